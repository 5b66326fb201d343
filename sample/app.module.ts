import { randomUUID } from 'node:crypto';
import { Module, ValidationPipe } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { TerminusModule } from '@nestjs/terminus';
import { ServiceExceptionFilter, ServiceModule } from 'nestjs-service';
import { ServiceHealthIndicator } from 'nestjs-service/terminus';
import { BanksController } from './banks/banks.controller.js';
import { CallLog, CallLogModule } from './calls/call-log.js';
import { CustomersController } from './customers/customers.controller.js';
import { HealthController } from './health/health.controller.js';
import { LinkSessionController } from './link-session/link-session.controller.js';
import { CustomerSessions } from './session/customer-session.js';

/** An application that uses the service. It is configured with SERVICE_* variables, also from .env. */
@Module({
  imports: [
    ConfigModule.forRoot(),
    CallLogModule,
    ServiceModule.forRootAsync({
      inject: [CallLog],
      useFactory: (log: CallLog) => ({ http: { onCall: log.add, requestId: randomUUID } }),
    }),
    TerminusModule,
  ],
  controllers: [BanksController, CustomersController, LinkSessionController, HealthController],
  providers: [
    CustomerSessions,
    ServiceHealthIndicator,
    { provide: APP_PIPE, useFactory: () => new ValidationPipe({ whitelist: true, transform: true }) },
    { provide: APP_FILTER, useClass: ServiceExceptionFilter },
  ],
  exports: [CustomerSessions],
})
export class AppModule {}
