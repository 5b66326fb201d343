import { type DynamicModule } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';

/** Reports what is no HttpException, and answers as Nest does: 500. */
export declare class SentryGlobalFilter extends BaseExceptionFilter {}
export declare class SentryModule {
  static forRoot(): DynamicModule;
}
