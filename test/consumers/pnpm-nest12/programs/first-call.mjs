import { NestFactory } from '@nestjs/core';
import assert from 'node:assert/strict';
import { AppModule } from '../dist/getting-started/app.module.js';

/** The application of docs/getting-started.md, configured by .env: its first call. */
const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
await app.listen(0, '127.0.0.1');
try {
  const answer = await fetch(`${await app.getUrl()}/banks`);
  assert.equal(answer.status, 200);
  assert.ok(Array.isArray(await answer.json()));
} finally {
  await app.close();
}
