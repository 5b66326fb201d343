import { Module, ValidationPipe } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { ServiceExceptionFilter, ServiceModule } from 'nestjs-service';
import { BanksController } from './banks/banks.controller.js';
import { CustomersController } from './customers/customers.controller.js';
import { HealthController } from './health/health.controller.js';
import { ServiceHealth } from './health/service-health.js';
import { LinkSessionController } from './link-session/link-session.controller.js';

/** A host application of the service. SERVICE_* variables, or .env, configure it. */
@Module({
  imports: [ConfigModule.forRoot(), ServiceModule.forRoot()],
  controllers: [BanksController, CustomersController, LinkSessionController, HealthController],
  providers: [
    ServiceHealth,
    { provide: APP_PIPE, useFactory: () => new ValidationPipe({ whitelist: true, transform: true }) },
    { provide: APP_FILTER, useClass: ServiceExceptionFilter },
  ],
})
export class AppModule {}
