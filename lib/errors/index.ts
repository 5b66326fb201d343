export { cleanText } from './clean-text.js';
export { copyOf } from './copy-of.js';
export { explain } from './explain.js';
export { describeError, whatHappened } from './describe-error.js';
export { nameOptions, withNames, type DescribeOption } from './name-options.js';
export { ServiceError, type Explanation, type Remedy } from './service.error.js';
export {
  describeFault,
  describeLocation,
  ServiceConfigurationError,
  type ConfigurationFault,
  type OptionLocation,
} from './configuration.error.js';
export { ServiceCertificateError, type CertificateSummary } from './certificate.error.js';
export { ServiceStartupError } from './startup.error.js';
export { ServiceTokenError, type TokenErrorCode, type TokenErrorDetails } from './token.error.js';
export { ServiceApiError, type ApiErrorBody, type ApiErrorDetails } from './api.error.js';
export {
  ServiceConnectionError,
  type ConnectionErrorDetails,
  type ConnectionErrorKind,
} from './connection.error.js';
export { ServiceRequestError, type RequestFault } from './request.error.js';
