import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, writeSnippets, type Snippets } from '../helpers/readme.js';

describe('docs/health.md', () => {
  let text: string;
  let snippets: Snippets;

  beforeAll(async () => {
    const document = await readDocument('docs/health.md');
    text = document.text;
    snippets = await writeSnippets(document.fences, { name: 'health' });
  });
  afterAll(() => snippets.remove());

  it('has a health route that works, with an answer as it is shown', async () => {
    const simulator = await ServiceSimulator.start();
    const before = { ...process.env };
    Object.assign(process.env, simulator.env({ environment: 'production', authentication: 'mtls' }));
    Object.assign(
      process.env,
      simulator.env({
        environment: 'sandbox',
        authentication: 'oauth',
        clientCertificate: true,
        name: 'ksa',
      }),
    );
    const shown = JSON.parse(/^```json\n([^]*?)^```$/m.exec(text)?.[1] ?? '') as Record<string, object>;
    try {
      const [first, second] = await health();
      expect(first?.service).toMatchObject({ status: 'up', certificate: { daysLeft: expect.any(Number) } });
      expect(formOf(first?.ksa)).toEqual(formOf(shown));
      expect(second?.ksa).toMatchObject({ ...first?.ksa, token: { ok: true } });
      expect(second?.ksa?.token).toEqual({ ok: true });
    } finally {
      for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
      await simulator.stop();
    }
  });

  /** What the route answers to two requests, by module. */
  async function health(): Promise<Record<string, Record<string, unknown>>[]> {
    const { HealthModule } = (await import(snippets.path('health.module.ts'))) as { HealthModule: Type };
    const services = [undefined, 'ksa'].map((name) => ServiceModule.forRoot({ name, isGlobal: true }));
    const module = await Test.createTestingModule({ imports: [...services, HealthModule] }).compile();
    const app = module.createNestApplication();
    await app.listen(0, '127.0.0.1');
    try {
      const url = await app.getUrl();
      const ask = async () => (await fetch(`${url}/health`)).json() as Promise<Answer>;
      return [(await ask()).details, (await ask()).details];
    } finally {
      await app.close();
    }
  }
});

interface Answer {
  details: Record<string, Record<string, unknown>>;
}

/** The same with the type of each date and number in its place. */
function formOf(answer: unknown): unknown {
  const text = JSON.stringify(answer, (_key, value: unknown) =>
    typeof value === 'number' ? 'a number' : value,
  );
  return JSON.parse(text.replace(/"[\d-]+T[\d:.]+Z"/g, '"a date"'));
}
