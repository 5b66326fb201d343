import 'reflect-metadata';

export { ServiceModule } from './service.module.js';
export { type ServiceModuleExtras } from './module/providers.js';
export { getServiceOptionsToken, getServiceToken, InjectService } from './service-token.js';
export { type AccessToken, type TokenOptions, type TokenStatus } from './auth/access-token.js';
export { ServiceAuthService } from './auth/service-auth.service.js';
export { BanksService, type BanksBody } from './banks/banks.service.js';
export { CreateCustomerDto, CustomersService, type Customer } from './customers/customers.service.js';
export { type ServiceHttpOptions } from './config/http.options.js';
export { type ResourceName } from './config/names.js';
export { type ServiceLinkSdkOptions } from './config/options.js';
export { type ServiceOAuthOptions, type TokenRefresh } from './config/options.js';
export {
  type ServiceAuthentication,
  type ServiceEnvironment,
  type ServiceModuleOptions,
  type ServiceOptionsFactory,
  type ServiceStartupCheck,
} from './config/options.js';
export { type PemValue, type SecretSource, type SecretValue } from './config/secret.js';
export { serviceConfig } from './config/variables.js';
export {
  type ServiceTlsOptions,
  type TlsIdentityPems,
  type TlsIdentitySource,
} from './config/tls.options.js';
export { type ServiceTokenCacheOptions, type TokenStore } from './config/options.js';
export { type ServiceUrls } from './config/options.js';
export { type ServiceWebhookOptions } from './config/options.js';
export {
  type ApiErrorBody,
  type ApiErrorDetails,
  type ApiErrorResponse,
  type CertificateSummary,
  type ConfigurationFault,
  type ConnectionErrorDetails,
  type ConnectionErrorKind,
  isServiceError,
  type OptionLocation,
  type Remedy,
  type RequestFault,
  ServiceApiError,
  ServiceCertificateError,
  ServiceConfigurationError,
  ServiceConnectionError,
  ServiceError,
  type ServiceErrorCode,
  ServiceRequestError,
  ServiceStartupError,
  ServiceTokenError,
  type TokenErrorCode,
  type TokenErrorDetails,
} from './errors/index.js';
export {
  type BodyParser,
  type ParseResult,
  type ResponseParser,
  type ResponseSchema,
  type SchemaIssue,
  type SchemaResult,
} from './http/parse-option.js';
export {
  answerOf,
  type ExceptionAnswer,
  type ExceptionAnswerOptions,
  toHttpException,
} from './answers/answer.js';
export {
  type CallOptions,
  type HeaderOptions,
  type HttpCallOptions,
  type HttpRequestOptions,
  type ReadOption,
  type ParseOption,
  type ResponseType,
} from './http/call-options.js';
export { type PathParams } from './http/call-url.js';
export { type PageRequest, type PaginateOptions } from './http/paginate.js';
export { ServiceExceptionFilter } from './answers/service-exception.filter.js';
export {
  type HttpRequestConfig,
  type HttpResponse,
  ServiceHttpService,
} from './http/service-http.service.js';
export {
  ConnectDto,
  type ConnectParameters,
  LinkSessionDto,
  type SessionParameters,
} from './link-sdk/link-sdk.service.js';
export { LinkSdkService } from './link-sdk/link-sdk.service.js';
export { type ServiceCallAttempt, type ServiceCallEvent } from './telemetry/telemetry.js';
export {
  createServiceClient,
  type ServiceClient,
  type ServiceClientOptions,
} from './engine/create-client.js';
export { type HealthCheckOutcome, type ServiceHealth, type ServiceHealthOptions } from './engine/health.js';
export { type IdentityStatus } from './tls/identity-source.js';
export { ServiceWebhookGuard } from './webhooks/service-webhook.guard.js';
export { type RawBody, verifyWebhook, type WebhookSignatureOptions } from './webhooks/webhooks.service.js';
export { WebhooksService } from './webhooks/webhooks.service.js';
