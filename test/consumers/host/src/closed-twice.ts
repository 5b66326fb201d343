import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { BanksService, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { outputOf, startAgain } from './again.js';
import { run } from './run.js';

const GRACE = 1_000;
/** Milliseconds in which a process must start, and end after its signal: much more than it needs. */
const END = 20_000;

const PLATFORMS = {
  context: undefined,
  express: () => new ExpressAdapter(),
  fastify: () => new FastifyAdapter(),
};
type Platform = keyof typeof PLATFORMS;

/** What the service does with the call in flight, and what becomes of that. */
const CALLS = { answered: { delayMs: 300 }, aborted: 'hang' } as const;
type Outcome = keyof typeof CALLS;

@Module({ imports: [ServiceModule.forRoot()] })
class HostModule {}

/** Has Nest's shutdown hooks and its own close() at the same signal: Nest 11 then runs the hooks twice (nest#16439). */
async function host(platform: Platform): Promise<void> {
  const adapter = PLATFORMS[platform]?.();
  const logger = ['error', 'warn'] as ('error' | 'warn')[];
  const web = adapter && (await NestFactory.create(HostModule, adapter, { logger }));
  await web?.listen(0, '127.0.0.1');
  const app = web ?? (await NestFactory.createApplicationContext(HostModule, { logger }));
  app.enableShutdownHooks();
  process.once('SIGTERM', () => void app.close());
  // Like the host's connection to a database. The process ends by the signal, which Nest sends again after its hooks.
  setInterval(() => undefined, END);
  // By no inbound request, for which the server would wait before the last hook.
  app
    .get(BanksService)
    .list()
    .then(
      () => console.log('answered'),
      () => console.log('aborted'),
    );
}

async function check(simulator: ServiceSimulator, platform: Platform, outcome: Outcome): Promise<void> {
  simulator.clearFaults();
  simulator.clearRequests();
  simulator.fail({ path: '/banks/v1', fault: CALLS[outcome] });
  const child = startAgain([platform], {
    ...simulator.env({ environment: 'production', authentication: 'oauth' }),
    SERVICE_HTTP_SHUTDOWN_TIMEOUT: String(outcome === 'answered' ? END : GRACE),
  });
  try {
    const output = outputOf(child);
    await simulator.waitForRequest(({ path }) => path === '/banks/v1', END);
    const ended = once(child, 'close', { signal: AbortSignal.timeout(END) });
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [null, 'SIGTERM'], output());
    assert.match(output(), outcome === 'answered' ? /^answered$/m : /Shutdown: 1 call was still running/);
    console.log(`${platform}: ${outcome}`);
  } finally {
    child.kill('SIGKILL');
  }
}

/** A signal and the host's own close(), with a call in flight: on each kind of application, in real processes. */
async function main(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  try {
    for (const platform of Object.keys(PLATFORMS) as Platform[]) {
      for (const outcome of Object.keys(CALLS) as Outcome[]) await check(simulator, platform, outcome);
    }
  } finally {
    await simulator.stop();
  }
}

const [, , platform] = process.argv;
run(platform === undefined ? main : () => host(platform as Platform));
