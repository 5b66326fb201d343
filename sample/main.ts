import { ConfigModule, ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { addDocs } from './start/docs.js';
import { describeFailure } from './start/failure.js';
import { readPort } from './start/port.js';
import { printStartReport } from './start/report.js';
import { isServiceNamed } from './start/service-named.js';

// The routes ask nobody who they are, so only this machine may call them.
const HOST = '127.0.0.1';

async function start(): Promise<void> {
  await ConfigModule.envVariablesLoaded;
  const isSimulated = !isServiceNamed();
  // Not a static import: with a service of its own, a host needs neither the simulator nor its packages.
  if (isSimulated) await (await import('./start/simulated-service.js')).startSimulatedService();

  const app = await NestFactory.create(AppModule, {
    // A failure to start is told once, below, in words; not by a log of stacks.
    abortOnError: false,
    logger: ['fatal', 'error', 'warn', 'log'],
    bufferLogs: true,
    autoFlushLogs: false,
    // A browser keeps connections open that it has not used yet. Without this, the stop would wait for them.
    forceCloseConnections: true,
  });
  app.enableShutdownHooks();
  addDocs(app);
  await app.listen(readPort(app.get(ConfigService)), HOST);
  app.flushLogs();
  await printStartReport(app, isSimulated);
}

start().catch((error: unknown) => {
  console.error(describeFailure(error));
  process.exit(1);
});
