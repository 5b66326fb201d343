import 'reflect-metadata';

export {
  type DoubledMethod,
  type DoubledMethods,
  type RoutedRequest,
  type RouteDoubles,
  type RecordedCall,
  type ServiceDoubles,
  type ServiceStubOptions,
  type StubbedRequest,
  type StubbedResponse,
} from './doubles/doubles.js';
export {
  type ApiErrorOptions,
  type ConnectionErrorOptions,
  type FailingCall,
  serviceErrors,
  type TokenErrorOptions,
} from './doubles/service-errors.js';
export {
  type ProviderOverrides,
  ServiceStub,
  type StubbedServiceClient,
  stubService,
  stubServiceClient,
} from './doubles/stub-service.js';
export {
  type SimulatedCustomer,
  type SimulatedRequest,
  type SimulatorAnswer,
  type SimulatorAnswerer,
  type SimulatorRoutes,
} from './answer-book.js';
export { type KnownApiOptions, knownApiRoutes } from './known-api-routes.js';
export { ServiceSimulator } from './simulator.js';
export {
  type AccessTokenRequest,
  type CertificateRefusal,
  type ClientCertificateRequest,
  type HandshakeCount,
  type ServerCertificateRequest,
  type SimulatorAddress,
  type SimulatorOptions,
} from './simulator.options.js';
export { type CertificateRequest, type IssuedCertificate } from './certificate-authority.js';
export {
  type ConnectionFault,
  type FaultHandle,
  type FaultRule,
  type AnswerFault,
  type SimulatorFault,
} from './faults.js';
export { type SimulatorFace, type RecordedRequest } from './request-log.js';
export { type SimulatorModeOptions, type SimulatorModuleOptions } from './module-options.js';
export { type RequestQuery } from './route-table.js';
export { type TlsAlert } from './servers/client-certificate.js';
export { type TokenClaims, type TokenSubject } from './token-issuer.js';
