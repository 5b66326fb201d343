import { type ArgumentsHost, Catch, HttpException } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { answerOf, ServiceError } from 'nestjs-service';

/**
 * Responds like ServiceExceptionFilter, and adds the hint of the error, which that filter only writes to the log. The page is
 * for the people who run the application, so they may see it.
 */
@Catch(ServiceError)
export class HintFilter extends BaseExceptionFilter {
  override catch(error: ServiceError, host: ArgumentsHost): void {
    const { status, message, code } = answerOf(error);
    super.catch(new HttpException({ statusCode: status, message, code, hint: error.hint }, status), host);
  }
}
