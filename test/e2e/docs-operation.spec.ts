import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { BanksService, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { OPTIONS } from '../../lib/config/options.js';
import { readDocument, writeSnippets, type Fence, type Snippets } from '../helpers/readme.js';

const before = { ...process.env };

describe('docs/operation.md', () => {
  let text: string;
  let fences: Fence[];
  let snippets: Snippets;

  beforeAll(async () => {
    ({ text, fences } = await readDocument('docs/operation.md'));
    // A drain that a test can wait for.
    const shortened = fences.map((fence) => ({ ...fence, text: fence.text.replace('8_000', '1_500') }));
    snippets = await writeSnippets(shortened, { name: 'operation' });
  });
  afterEach(() => {
    for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
  });
  afterAll(() => snippets.remove());

  const manifest = () => fences.find(({ language }) => language === 'yaml')?.text ?? '';
  const numberOf = (key: string, source = text) =>
    Number(new RegExp(`${key}\\D+([\\d_]+)`).exec(source)?.[1]?.replace('_', ''));

  it('has a route for readiness that answers 503 from SIGTERM on, while calls are served', async () => {
    const { HealthModule } = (await import(snippets.path('health.module.ts'))) as { HealthModule: Type };
    @Controller('banks')
    class BanksController {
      constructor(private readonly banks: BanksService) {}
      @Get()
      list() {
        return this.banks.list();
      }
    }
    const simulator = await ServiceSimulator.start();
    Object.assign(process.env, simulator.env({ environment: 'production', authentication: 'mtls' }));
    process.env.SERVICE_HTTP_SHUTDOWN_TIMEOUT = String(numberOf('SHUTDOWN_TIMEOUT', manifest()));
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ isGlobal: true }), HealthModule],
      controllers: [BanksController],
    }).compile();
    const app = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    const probe = manifest().split('readinessProbe')[1];
    const path = /path: ([\w/]+)/.exec(probe)?.[1] ?? '';
    const ready = async () => (await fetch(url + path)).status;
    const up = (await (await fetch(url + path)).json()) as { details: object };
    expect(up.details).toMatchObject({
      service: { status: 'up', certificate: { daysLeft: expect.any(Number) }, ping: { ok: true } },
    });
    expect(await ready()).toBe(200);
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    const closed = (app.close as (signal: string) => Promise<void>).call(app, 'SIGTERM');
    // Nest's hooks run one after the other, in steps of the event loop.
    while ((await ready()) === 200);
    expect(await ready()).toBe(503);
    expect((await fetch(`${url}/banks`)).status).toBe(200);
    await closed;
    await expect(fetch(`${url}/banks`)).rejects.toThrow();
    await simulator.stop();
  });

  it('has a Deployment whose times fit, and whose variables there are', () => {
    const drainMs = numberOf('gracefulShutdownTimeoutMs');
    const callsMs = numberOf('SHUTDOWN_TIMEOUT', manifest());
    const graceMs = 1_000 * numberOf('terminationGracePeriodSeconds', manifest());
    expect(drainMs).toBeGreaterThan(0);
    expect(callsMs).toBeGreaterThan(drainMs);
    expect(graceMs).toBeGreaterThan(callsMs);
    const known = new Set(
      OPTIONS.flatMap(({ suffix }) => (suffix ? [`SERVICE_${suffix}`, `SERVICE_${suffix}_FILE`] : [])),
    );
    const named = manifest().match(/SERVICE_\w+/g) ?? [];
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
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
    const [, table = ''] = text.split('## OpenTelemetry');
    const rows = [...table.matchAll(/^\| `(nestjs_service\.[\w.]+)` +\| (.*?) +\|/gm)].map(
      ([, ...cells]) => cells,
    );
    expect(rows.sort()).toEqual(named.sort());
  });
});
