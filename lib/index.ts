import 'reflect-metadata';

export { ServiceModule } from './service.module.js';
export { type ServiceModuleExtras } from './module/definition.js';
export { getServiceToken, InjectService } from './service-token.js';
export {
  type AccessToken,
  ServiceAuthService,
  TOKEN_CHANNEL,
  type TokenEvent,
  type WaitOptions,
} from './auth/index.js';
export { BanksService, type BanksBody } from './banks/banks.service.js';
export { CreateCustomerDto } from './customers/create-customer.dto.js';
export { CustomersService, type Customer } from './customers/customers.service.js';
export {
  type PemValue,
  type SecretValue,
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceHttpOptions,
  type ServiceLinkSdkOptions,
  type ServiceModuleOptions,
  type ServiceOAuthOptions,
  type ServiceTlsOptions,
  type ServiceUrls,
  type TlsIdentityPems,
  type TlsIdentitySource,
  type TokenRefresh,
} from './config/options.js';
export { type ServiceOptionsFactory } from './config/options-factory.js';
export { serviceConfig } from './config/service.config.js';
export { type TokenStore } from './config/token-store.js';
export {
  type ApiErrorBody,
  type CertificateSummary,
  type ConfigurationFault,
  type ConnectionErrorKind,
  type RequestFault,
  ServiceApiError,
  ServiceCertificateError,
  ServiceConfigurationError,
  ServiceConnectionError,
  ServiceError,
  ServiceRequestError,
  ServiceTokenError,
  type TokenErrorCode,
} from './errors/index.js';
export { ServiceExceptionFilter } from './http/service-exception.filter.js';
export {
  type CallOptions,
  type HttpCallOptions,
  type HttpRequestOptions,
  ServiceHttpService,
} from './http/service-http.service.js';
export { ConnectDto } from './link-sdk/connect.dto.js';
export { type ConnectParameters } from './link-sdk/connect-parameters.js';
export { LinkSdkService } from './link-sdk/link-sdk.service.js';
export { type IdentityStatus } from './tls/index.js';
