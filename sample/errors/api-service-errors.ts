import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiResponse } from '@nestjs/swagger';
import { STATUS_CODES } from 'node:http';

class ServiceErrorAnswer {
  @ApiProperty() statusCode!: number;
  @ApiProperty() message!: string;
  @ApiProperty({ example: 'api_error' }) code!: string;
  @ApiProperty({ required: false, example: 'CUSTOMER_ALREADY_EXISTS' }) serviceStatus?: string;
}

/** Documents the responses of ServiceExceptionFilter for Swagger, on a controller or a method. See docs/recipes.md. */
export function ApiServiceErrors(): ClassDecorator & MethodDecorator {
  const answer = (status: number) =>
    ApiResponse({ status, type: ServiceErrorAnswer, description: STATUS_CODES[status] });
  return applyDecorators(...[400, 404, 409, 422, 502, 503, 504].map(answer));
}
