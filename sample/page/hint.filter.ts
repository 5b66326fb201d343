import { type ArgumentsHost, Catch, HttpException } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { answerOf, ServiceError } from 'nestjs-service';

/**
 * Answers as ServiceExceptionFilter does, with the hint, which that filter writes to the log alone: the page is for those
 * who run the application, not for its users.
 */
@Catch(ServiceError)
export class HintFilter extends BaseExceptionFilter {
  override catch(error: ServiceError, host: ArgumentsHost): void {
    const { status, message, code } = answerOf(error);
    super.catch(new HttpException({ statusCode: status, message, code, hint: error.hint }, status), host);
  }
}
