import { applyDecorators } from '@nestjs/common';
import { ApiResponse, type ApiResponseOptions } from '@nestjs/swagger';
import { ServiceErrorAnswer } from './service-error-answer.js';

const ANSWERS: readonly ApiResponseOptions[] = [
  { status: 400, description: 'The service refuses the request' },
  { status: 404, description: 'The service does not know it' },
  { status: 409, description: 'It conflicts with what the service has' },
  { status: 422, description: 'The service cannot do what the request says' },
  { status: 502, description: 'The service failed to answer' },
  {
    status: 503,
    description: 'The service cannot be reached, or asks for fewer requests',
    headers: {
      'Retry-After': { description: 'Seconds to wait, where known', schema: { type: 'integer' } },
    },
  },
  { status: 504, description: 'The service did not answer in time' },
];

/**
 * The answers of `ServiceExceptionFilter`, in the Swagger document: on a controller, or on a method that calls the
 * service. A method's own `@ApiResponse` of the same status takes precedence.
 */
export function ApiServiceErrors(): ClassDecorator & MethodDecorator {
  return applyDecorators(...ANSWERS.map((answer) => ApiResponse({ ...answer, type: ServiceErrorAnswer })));
}
