import { expect, it } from '@jest/globals';
import { Module, type INestApplicationContext, type Type } from '@nestjs/common';
import { ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, writeSnippets } from '../helpers/readme.js';

it('docs/startup-check.md has a start that prints each fault on a line', async () => {
  const simulator = await ServiceSimulator.start();
  const options = simulator.moduleOptions({ environment: 'sandbox' });
  await simulator.stop();
  const document = await readDocument('docs/startup-check.md');
  const snippets = await writeSnippets(document.fences, { name: 'startup-check' });
  const { start } = (await import(snippets.path('start.ts'))) as {
    start: (module: Type) => Promise<INestApplicationContext | undefined>;
  };
  @Module({ imports: [ServiceModule.forRoot({ ...options, startupCheck: 'fail', http: { retries: 0 } })] })
  class AppModule {}
  const lines: string[] = [];
  const { exitCode, stderr } = process;
  const setStderr = (value: unknown) =>
    Object.defineProperty(process, 'stderr', { value, configurable: true });
  setStderr({ write: (text: unknown) => lines.push(String(text)) > 0 });
  try {
    expect(await start(AppModule)).toBeUndefined();
    expect(process.exitCode).toBe(1);
  } finally {
    setStderr(stderr);
    process.exitCode = exitCode;
    await snippets.remove();
  }
  expect(lines.at(-1)).toMatch(/^startup_check_failed SERVICE_SANDBOX_URL: .*ECONNREFUSED/);
});
