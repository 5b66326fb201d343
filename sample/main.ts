import { type DynamicModule } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { PageModule } from './page/page.module.js';
import { servePage } from './page/serve-page.js';
import { addDocs } from './start/docs.js';
import { describeFailure } from './start/failure.js';
import { acceptLocalOnly } from './start/local-only.js';
import { readPort } from './start/port.js';
import { printStartReport } from './start/report.js';
import { isServiceNamed } from './start/service-named.js';

// The routes ask nobody who they are, so only this machine may call them.
const HOST = '127.0.0.1';

async function start(): Promise<void> {
  await ConfigModule.envVariablesLoaded;
  const isSimulated = !isServiceNamed();
  const playground = isSimulated ? await startSimulation() : undefined;

  const app = await NestFactory.create<NestExpressApplication>(PageModule.forRoot(playground), {
    // A failure to start is told once, below, in words; not by a log of stacks.
    abortOnError: false,
    logger: ['fatal', 'error', 'warn', 'log'],
    bufferLogs: true,
    autoFlushLogs: false,
    // A browser keeps connections open that it has not used yet. Without this, the stop would wait for them. It also
    // ends running requests, so it is not for production: see "Shutdown" in docs/operations.md.
    forceCloseConnections: true,
  });
  app.enableShutdownHooks();
  acceptLocalOnly(app);
  addDocs(app);
  servePage(app);
  await app.listen(readPort(app.get(ConfigService)), HOST);
  app.flushLogs();
  await printStartReport(app, isSimulated);
}

/** No static imports: with a service of its own, a host needs neither the simulator nor its packages. */
async function startSimulation(): Promise<DynamicModule> {
  const { startSimulatedService } = await import('./start/simulated-service.js');
  await startSimulatedService();
  const { PlaygroundModule } = await import('./playground/playground.module.js');
  return PlaygroundModule.start();
}

start().catch((error: unknown) => {
  console.error(describeFailure(error));
  process.exit(1);
});
