import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type DynamicModule, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { type AsyncLocalStorage } from 'node:async_hooks';
import { type Registry } from 'prom-client';
import { BanksService, ServiceHttpService } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, writeSnippets, type Snippets } from '../helpers/readme.js';

describe('docs/observability.md', () => {
  let text: string;
  let snippets: Snippets;

  beforeAll(async () => {
    const document = await readDocument('docs/observability.md');
    text = document.text;
    snippets = await writeSnippets(document.fences, { name: 'observability' });
  });
  afterAll(() => snippets.remove());

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

  it('has a provider that ends the SDK with the application', async () => {
    const { EndOfTelemetry } = (await import(snippets.path('end-of-telemetry.ts'))) as {
      EndOfTelemetry: Type;
    };
    const shutdown = jest.fn(() => Promise.resolve());
    const module = await Test.createTestingModule({
      providers: [EndOfTelemetry, { provide: 'sdk', useValue: { shutdown } }],
    }).compile();
    await module.init();
    await module.close();
    expect(shutdown).toHaveBeenCalledTimes(1);
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
