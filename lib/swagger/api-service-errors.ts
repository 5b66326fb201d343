import { applyDecorators, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiResponse, getSchemaPath, type ApiResponseOptions } from '@nestjs/swagger';
import { ServiceErrorAnswer } from './service-error-answer.js';

/** An HttpException of Nest, as ValidationPipe throws it. It never comes to ServiceExceptionFilter. */
const OF_NEST = {
  type: 'object',
  required: ['statusCode', 'message', 'error'],
  properties: {
    statusCode: { type: 'number', example: 400 },
    message: { oneOf: [{ type: 'array', items: { type: 'string' } }, { type: 'string' }] },
    error: { type: 'string', example: 'Bad Request' },
  },
};

const ANSWERS: readonly ApiResponseOptions[] = [
  { status: 404, description: 'The service does not know it' },
  { status: 409, description: 'It conflicts with what the service has' },
  { status: 422, description: 'The service cannot do what the request says' },
  { status: 502, description: 'The service failed to answer; a change may have been carried out' },
  {
    status: 503,
    description: 'The service cannot be reached, or asks for fewer requests',
    headers: {
      'Retry-After': { description: 'Seconds to wait, where known', schema: { type: 'integer' } },
    },
  },
  { status: 504, description: 'The service did not answer in time' },
];

/** The form of a filter's own answers. */
export interface ApiServiceErrorsOptions {
  /** A class with the fields, as Swagger reads them. Default: `ServiceErrorAnswer`. */
  type?: Type<unknown>;
  /** Default: `application/json`. */
  contentType?: string;
}

/**
 * The answers of `ServiceExceptionFilter`, in the Swagger document: on a controller, or on a method that calls the
 * service. A 400 may also be one of Nest's `ValidationPipe`. A method's own `@ApiResponse` of the same status takes
 * precedence. For a filter of your own that answers in another form, name its class: `{ type: Problem }`.
 */
export function ApiServiceErrors({
  type,
  contentType = 'application/json',
}: ApiServiceErrorsOptions = {}): ClassDecorator & MethodDecorator {
  const answer = type ?? ServiceErrorAnswer;
  const form = { $ref: getSchemaPath(answer) };
  const content = (schema: object): object => ({ content: { [contentType]: { schema } } });
  return applyDecorators(
    ApiExtraModels(answer),
    ApiResponse({
      status: 400,
      description: 'The request is refused, by the service or before it is sent there',
      ...content(type ? form : { oneOf: [form, OF_NEST] }),
    }),
    ...ANSWERS.map((each) => ApiResponse({ ...each, ...content(form) })),
  );
}
