import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DynamicModule, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { type AsyncLocalStorage } from 'node:async_hooks';
import { type AddressInfo } from 'node:net';
import { type Server } from 'node:http';
import { type Registry } from 'prom-client';
import { BanksService, ServiceHttpService, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, writeSnippets, type Snippets } from '../helpers/readme.js';

describe('docs/operations.md', () => {
  let text: string;
  let snippets: Snippets;

  beforeAll(async () => {
    const document = await readDocument('docs/operations.md');
    text = document.text;
    snippets = await writeSnippets(document.fences, { name: 'operations' });
  });
  afterAll(() => snippets.remove());

  it('has the files that are tested here', () => {
    expect(snippets.files.length).toBeGreaterThan(0);
  });

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
      const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
      const ask = async () => (await fetch(`http://127.0.0.1:${port}/health`)).json() as Promise<Answer>;
      return [(await ask()).details, (await ask()).details];
    } finally {
      await app.close();
    }
  }

  it('has request ids that calls carry', async () => {
    const { inboundIds, service } = (await import(snippets.path('request-ids.ts'))) as {
      inboundIds: AsyncLocalStorage<string>;
      service(): DynamicModule;
    };
    const simulator = await ServiceSimulator.start();
    const before = { ...process.env };
    Object.assign(process.env, simulator.env());
    try {
      const module = await Test.createTestingModule({ imports: [service()] }).compile();
      await inboundIds.run('inbound-1', () => module.get(BanksService).list());
      await module.get(BanksService).list();
      const sent = simulator.apiRequests.map(({ headers }) => headers['x-correlation-id']);
      expect(sent).toEqual(['inbound-1', undefined]);
      await module.close();
    } finally {
      for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
      await simulator.stop();
    }
  });

  it('has metrics of calls for Prometheus', async () => {
    const { registry, service } = (await import(snippets.path('call-metrics.ts'))) as {
      registry: Registry;
      service(): DynamicModule;
    };
    const { orderStatus } = (await import(snippets.path('order-status.ts'))) as {
      orderStatus(http: ServiceHttpService, id: string): Promise<unknown>;
    };
    const simulator = await ServiceSimulator.start();
    const before = { ...process.env };
    Object.assign(process.env, simulator.env({ authentication: 'oauth' }));
    try {
      const module = await Test.createTestingModule({ imports: [service()] }).compile();
      module.useLogger(false);
      simulator.fail({ path: /banks/, fault: { status: 503 } });
      await module.get(BanksService).list();
      await orderStatus(module.get(ServiceHttpService), 'o-42').catch(() => undefined);
      const text = await registry.metrics();
      expect(text).toContain('service_call_retries_total{kind="api",method="GET",path="/banks/v1"} 1');
      const counted = [...text.matchAll(/duration_seconds_count\{(.*)\} (\d+)/g)].map(
        ([, ...found]) => found,
      );
      expect(counted).toEqual([
        ['kind="token",method="POST",path="/oauth2/token",outcome="200"', '1'],
        ['kind="api",method="GET",path="/banks/v1",outcome="200"', '1'],
        ['kind="api",method="GET",path="/orders/v1/{id}",outcome="404"', '1'],
      ]);
      await module.close();
    } finally {
      for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
      await simulator.stop();
    }
  });

  it('names every metric that there is, with its unit', async () => {
    const source = await readDocument('lib/telemetry/telemetry.ts');
    const made = [
      ...source.text.matchAll(/(?:counter|duration)\(\s*'([\w.]+)'(?:, '(\w+)', '[A-Z]|,\s*'(\w+)',)?/g),
    ];
    const named = made.map(([, name, one, other]) => [
      `nestjs_service.${name}`,
      (one ?? other) ? `counter, \`{${one ?? other}}\`` : 'histogram, `s`',
    ]);
    named.push(['nestjs_service.certificate.days_left', 'gauge, `d`']);
    const [, table = ''] = text.split('### Metrics');
    const rows = [...table.matchAll(/^\| `(nestjs_service\.[\w.]+)` +\| (.*?) +\|/gm)].map(
      ([, ...cells]) => cells,
    );
    expect(rows.sort()).toEqual(named.sort());
  });
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
