import { Body, Controller, HttpCode, Module, Post, UseGuards, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ServiceModule, ServiceWebhookGuard } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { run } from '../run.js';

/** Parsed and serialised again, it has other bytes. */
const BODY = '{ "type":  "entity.created" }';
const XML = { 'content-type': 'application/xml' };

@Controller('webhook')
class WebhookController {
  static readonly received: unknown[] = [];

  @Post()
  @HttpCode(200)
  @UseGuards(ServiceWebhookGuard)
  receive(@Body() event: unknown): void {
    WebhookController.received.push(event);
  }
}

@Module({ imports: [ServiceModule.forRoot()], controllers: [WebhookController] })
class WebhookModule {}

const PLATFORMS: Record<string, (rawBody: boolean) => Promise<INestApplication>> = {
  express: async (rawBody) => {
    const app = await NestFactory.create<NestExpressApplication>(WebhookModule, new ExpressAdapter(), {
      rawBody,
      logger: false,
    });
    app.useBodyParser('json', { limit: '1mb' });
    return app.useBodyParser('text', { type: 'application/xml' });
  },
  fastify: (rawBody) => {
    const adapter = new FastifyAdapter();
    adapter
      .getInstance()
      .addContentTypeParser('application/xml', { parseAs: 'buffer' }, (_request, body, done) =>
        done(null, body),
      );
    return NestFactory.create(WebhookModule, adapter, { rawBody, logger: false });
  },
};

async function withHost(app: INestApplication, check: (url: string) => Promise<void>): Promise<void> {
  await app.listen(0, '127.0.0.1');
  try {
    await check(`${await app.getUrl()}/webhook`);
  } finally {
    await app.close();
  }
}

/** ServiceWebhookGuard with the raw body, as each version and platform of Nest keeps it. */
async function main(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  Object.assign(process.env, simulator.env());
  const send = async (...webhook: Parameters<ServiceSimulator['sendWebhook']>): Promise<number> =>
    (await simulator.sendWebhook(...webhook)).status;
  try {
    for (const [name, create] of Object.entries(PLATFORMS)) {
      await withHost(await create(true), async (url) => {
        assert.equal(await send(url, BODY), 200, name);
        assert.equal(await send(url, { text: 'x'.repeat(200_000) }), 200, name);
        assert.equal(await send(url, '<a/>', XML), 200, name);
        assert.equal(String(WebhookController.received.at(-1)), '<a/>', name);
        assert.equal(await send(url, BODY, { 'service-signature': 'sha512=00' }), 401, name);
        assert.equal((await fetch(url, { method: 'POST' })).status, 401, name);
      });
      await withHost(await create(false), async (url) => {
        assert.equal(await send(url, BODY), 500, name);
      });
    }
    delete process.env.SERVICE_WEBHOOK_SECRET;
    const options = { abortOnError: false, logger: false } as const;
    await assert.rejects(NestFactory.create(WebhookModule, options), /webhook\.secret.*is missing/s);
  } finally {
    await simulator.stop();
  }
}

run(main);
