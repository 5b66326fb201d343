export { ApiServiceErrors, type ApiServiceErrorsOptions } from './api-service-errors.js';
export { ServiceErrorAnswer } from './service-error-answer.js';
