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
    // main.ts prints one readable message if the start fails. Without this, Nest would log stacks and exit.
    abortOnError: false,
    // Nest's forty lines about modules and routes would hide the start report, so they are turned off until it is printed.
    logger: ['fatal', 'error', 'warn'],
    bufferLogs: true,
    autoFlushLogs: false,
    // Browsers open connections in advance, and the shutdown would wait for them. This option also ends requests that are
    // running, so do not use it in production.
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

/** Imported only when needed: an application with an account needs neither the simulator nor its packages. */
async function startSimulation(): Promise<DynamicModule> {
  const { PlaygroundModule } = await import('./playground/playground.module.js');
  return PlaygroundModule.start();
}
