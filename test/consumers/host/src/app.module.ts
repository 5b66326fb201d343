import { Module } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { ServiceModule } from 'nestjs-service';
import { BankingController } from './banking.controller.js';
import { BankingService } from './banking.service.js';

/** Configured by the environment alone: SERVICE_* and, for the second service, SERVICE_KSA_*. */
@Module({
  imports: [ConfigModule.forRoot(), ServiceModule.forRoot(), ServiceModule.forRoot({ name: 'ksa' })],
  controllers: [BankingController],
  providers: [BankingService],
})
export class AppModule {}
