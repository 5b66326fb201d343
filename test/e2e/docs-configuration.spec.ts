import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type DynamicModule } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { BanksService, LinkSdkService, ServiceModule } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { readVariables } from '../../lib/config/variables.js';
import { readDocument, writeSnippets } from '../helpers/readme.js';
import { startSimulator } from '../helpers/simulators.js';

const before = { ...process.env };
const document = await readDocument('docs/configuration.md');
const snippets = await writeSnippets(document.fences, { name: 'configuration' });

afterEach(() => {
  for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
});

describe('docs/configuration.md', () => {
  let simulator: ServiceSimulator;

  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterAll(async () => {
    await simulator.stop();
    await snippets.remove();
  });

  const load = async <T>(file: string): Promise<T> => (await import(snippets.path(file))) as T;

  it('has a namespace that is read', async () => {
    const { config } = await load<{ config(): Promise<DynamicModule> }>('namespace.ts');
    const { environment: _, ...options } = simulator.moduleOptions({ environment: 'production' });
    process.env.SERVICE_ENVIRONMENT = 'sandbox';
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(options), config()],
    }).compile();
    module.useLogger(false);
    await module.init();
    await module.get(BanksService).list();
    expect(simulator.requests.at(-1)?.face).toBe('base');
    await module.close();
  });

  it('has options from a vault, and a second service, that work', async () => {
    const { fromVault } = await load<{
      fromVault(vault: { read(name: string): Promise<string> }): DynamicModule;
    }>('options.ts');
    const { tls, oauth, appToken } = simulator.moduleOptions({
      environment: 'production',
      authentication: 'mtls',
      oauth: true,
    });
    const vault: Record<string, string | undefined> = {
      'app-token': appToken,
      'client-secret': oauth?.clientSecret,
      certificate: tls.certificate,
      'private-key': tls.privateKey,
      chain: tls.chain,
    };
    const { SERVICE_ENVIRONMENT, SERVICE_BASE_URL, SERVICE_AUTH_URL } = simulator.env();
    Object.assign(process.env, {
      SERVICE_ENVIRONMENT,
      SERVICE_BASE_URL,
      SERVICE_AUTH_URL,
      SERVICE_CLIENT_ID: simulator.clientId,
    });
    Object.assign(process.env, simulator.env({ environment: 'sandbox', name: 'ksa' }));
    const module = await Test.createTestingModule({
      imports: [
        fromVault({ read: async (name) => vault[name] ?? '' }),
        ServiceModule.forRoot({ name: 'ksa', isGlobal: true }),
      ],
    }).compile();
    simulator.clearRequests();
    await module.get(BanksService).list();
    await module.get(LinkSdkService).connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
    await module.get<BanksService>('nestjs-service:ksa:BanksService').list();
    expect(simulator.requests.map(({ face }) => face)).toEqual(['base', 'token', 'sandbox']);
    await module.close();
  });

  it('names every option and variable there is, and no other', () => {
    const asked = new Set<string>();
    readVariables((variable) => void asked.add(variable));
    const documented = new Set(
      document.text.replace(/SERVICE_[A-Z_]*\*/g, '').match(/SERVICE_[A-Z_]+[A-Z]/g),
    );
    expect([...documented].sort()).toEqual([...asked].sort());
  });
});
