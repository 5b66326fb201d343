// Boots one host and answers with the CPU that this took: of importing the package, and of starting the application.
import 'reflect-metadata';
// What both hosts have loaded by then: a host of axios, ConfigModule and class-validator.
import { HttpModule, HttpService } from '@nestjs/axios';
import { ConfigModule } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import 'axios';
import 'class-validator';
import { cpuSince, packaged } from '../harness.mjs';

process.once('message', async ({ options }) => {
  const logger = false;
  const config = () => ConfigModule.forRoot({ ignoreEnvFile: true });
  const imports = [config(), HttpModule.register({})];
  const before = process.cpuUsage();
  if (options) {
    const { ServiceModule } = await packaged();
    imports.push(ServiceModule.forRoot(options));
  }
  const imported = cpuSince(before);
  const app = await NestFactory.createApplicationContext({ module: class Host {}, imports }, { logger });
  app.get(HttpService, { strict: false });
  const all = process.cpuUsage();
  await app.close();
  process.send({ answer: { imported, total: all.user + all.system } }, () => process.disconnect());
});
