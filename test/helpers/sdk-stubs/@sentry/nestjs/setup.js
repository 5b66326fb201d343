import { Catch, HttpException } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { captureException } from './index.js';

export class SentryGlobalFilter extends BaseExceptionFilter {
  catch(exception, host) {
    if (!(exception instanceof HttpException)) captureException(exception);
    return super.catch(exception, host);
  }
}
Catch()(SentryGlobalFilter);

export class SentryModule {
  static forRoot() {
    return { module: SentryModule };
  }
}
