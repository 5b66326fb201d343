import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DynamicModule, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { type AsyncLocalStorage } from 'node:async_hooks';
import { type AddressInfo } from 'node:net';
import { type Server } from 'node:http';
import { BanksService } from 'nestjs-service';
import { ServiceSimulator, stubService } from 'nestjs-service/testing';
import { SIMULATOR_HELP } from '../../lib/cli/simulator-options.js';
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
      simulator.env({ environment: 'sandbox', authentication: 'oauth', name: 'ksa' }),
    );
    try {
      expect(await health()).toMatchObject({
        details: {
          service: { status: 'up', certificate: { daysLeft: expect.any(Number) } },
          ksa: { status: 'up', token: { ok: true }, ping: { ok: true } },
        },
      });
    } finally {
      for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
      await simulator.stop();
    }
    const shown = JSON.parse(/^```json\n([^]*?)^```$/m.exec(text)?.[1] ?? '') as object;
    const certificate = { ...EXPIRING, validTo: new Date('2031-01-01T00:00:00.000Z') };
    const doubles = { auth: { identityStatus: { healthy: true, certificate, daysLeft: 10 } } };
    const { details } = (await health({ named: { ksa: doubles } })) as { details: { ksa: { ping: object } } };
    const ping = { ok: true, checkedAt: '2030-12-21T09:00:00.000Z' };
    expect({ ...details.ksa, ping }).toEqual(shown);
  });

  /** What the route answers; with doubles where there are some. */
  async function health(doubles?: Parameters<typeof stubService>[1]): Promise<unknown> {
    const { HealthModule } = (await import(snippets.path('health.module.ts'))) as { HealthModule: Type };
    const builder = Test.createTestingModule({ imports: [HealthModule] });
    if (doubles) stubService(builder, doubles);
    const app = (await builder.compile()).createNestApplication();
    await app.listen(0, '127.0.0.1');
    try {
      const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
      return await (await fetch(`http://127.0.0.1:${port}/health`)).json();
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

  it('names the options and faults of the simulator as its help does', () => {
    const section = text.split('## The simulator as a command')[1]?.split('\n## ')[0] ?? '';
    const options = [...SIMULATOR_HELP.matchAll(/^ {2}(--(?!help)[a-z-]+ <[^\n]*?>\S*)(?: {2}|$)/gm)].map(
      ([, option = '']) => `\`${option}\``,
    );
    expect(options).toHaveLength(4);
    const faults = /or one of:\n\s+([^.]+)\./.exec(SIMULATOR_HELP)?.[1]?.split(', ') ?? [];
    expect(faults).toHaveLength(7);
    const named = [...options, ...faults.map((fault) => `\`${fault}\``)];
    expect(named.filter((each) => !section.includes(each))).toEqual([]);
  });
});

const EXPIRING = {
  subject: 'CN=application',
  issuer: 'CN=issuer',
  fingerprint256: 'AB:CD',
  validFrom: new Date(0),
};
