// Boots one host and answers with the CPU that this took: of importing the package, and of the whole process.
import 'reflect-metadata';
import { HttpModule, HttpService } from '@nestjs/axios';
import { NestFactory } from '@nestjs/core';
import 'axios';
import { cpuSince, packaged } from '../harness.mjs';

process.once('message', async ({ options, isConfigured }) => {
  const logger = false;
  const imports = [HttpModule.register({})];
  if (isConfigured) {
    const { ConfigModule } = await import('@nestjs/config');
    await import('class-validator');
    imports.push(ConfigModule.forRoot({ ignoreEnvFile: true }));
  }
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
