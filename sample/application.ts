import { type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { PageModule } from './page/page.module.js';
import { servePage } from './page/serve-page.js';
import { addDocs } from './start/docs.js';
import { acceptLocalOnly } from './start/local-only.js';
import { printStartReport } from './start/report.js';

export async function startApplication(port: number, host: string, isSimulated: boolean): Promise<void> {
  const playground = isSimulated ? await startSimulation() : undefined;
  const app = await NestFactory.create<NestExpressApplication>(PageModule.forRoot(playground), {
    // A failure to start is told once, by main.ts, in words; not by a log of stacks.
    abortOnError: false,
    // Until the report is printed, as forty lines about modules and routes would hide it.
    logger: ['fatal', 'error', 'warn'],
    bufferLogs: true,
    autoFlushLogs: false,
    // A browser keeps connections open that it has not used yet. Without this, the stop would wait for them. It also
    // ends running requests, so it is not for production.
    forceCloseConnections: true,
  });
  app.enableShutdownHooks();
  acceptLocalOnly(app);
  addDocs(app);
  servePage(app);
  await app.listen(port, host);
  app.flushLogs();
  await printStartReport(app, isSimulated);
  app.useLogger(['fatal', 'error', 'warn', 'log']);
}

/** No static import: with a service of its own, a host needs neither the simulator nor its packages. */
async function startSimulation(): Promise<DynamicModule> {
  const { PlaygroundModule } = await import('./playground/playground.module.js');
  return PlaygroundModule.start();
}
