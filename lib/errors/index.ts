export { type ConnectionErrorKind, type ServiceErrorCode, type TokenErrorCode } from './error-codes.js';
export { cleanText, holdsSecret } from './clean-text.js';
export {
  describeError,
  explain,
  whatHappened,
  type AddressOption,
  type DescribeOption,
} from './error-texts.js';
export { copyOf, isServiceError, ServiceError, type Explanation, type Remedy } from './service.error.js';
export {
  describeFault,
  describeLocation,
  ServiceCertificateError,
  ServiceConfigurationError,
  ServiceStartupError,
  type CertificateSummary,
  type ConfigurationFault,
  type OptionLocation,
} from './configuration.error.js';
export { hideCustomer, ServiceTokenError, type TokenErrorDetails } from './token.error.js';
export {
  caseOf,
  fieldsOf,
  ServiceApiError,
  type ApiErrorBody,
  type ApiErrorDetails,
  type ApiErrorResponse,
} from './api.error.js';
export {
  CLIENT_CLOSED,
  mayPass,
  ServiceConnectionError,
  type ConnectionErrorDetails,
} from './connection.error.js';
export { ServiceRequestError, type RequestFault } from './request.error.js';
