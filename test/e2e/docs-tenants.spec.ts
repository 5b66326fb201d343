import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ServiceClients,
  ServiceStartupError,
  type ServiceClient,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, writeSnippets } from '../helpers/readme.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { rejection } from '../helpers/start-module.js';

interface Tenants {
  client(tenant: string): Promise<ServiceClient>;
  end(tenant: string): Promise<void>;
}

const snippets = await writeSnippets((await readDocument('docs/tenants.md')).fences, { name: 'tenants' });
// Its test of a host is a test of this file.
await import(snippets.path('tenants.spec.ts'));

describe('docs/tenants.md', () => {
  let simulator: ServiceSimulator;

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
  });
  afterAll(async () => {
    await simulator.stop();
    await snippets.remove();
  });

  it('has a client for each tenant, which is made once and can be ended', async () => {
    const { Tenants, TenantTable } = (await import(snippets.path('tenants.ts'))) as Record<string, Type>;
    const { TenantsModule } = (await import(snippets.path('tenants.module.ts'))) as Record<string, Type>;
    const tokens: Record<string, string> = { acme: simulator.appToken, bolt: 'wrong' };
    const asked: string[] = [];
    const optionsOf = (tenant: string) => {
      asked.push(tenant);
      const options = simulator.moduleOptions({ environment: 'sandbox' });
      return Promise.resolve({ ...options, appToken: tokens[tenant], startupCheck: 'fail' });
    };
    const module = await Test.createTestingModule({ imports: [TenantsModule] })
      .overrideProvider(TenantTable)
      .useValue({ optionsOf })
      .compile();
    const app = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    const banks = await fetch(`${await app.getUrl()}/tenants/acme/banks`);
    expect(await banks.json()).toHaveLength(10);
    const tenants = module.get<Tenants>(Tenants);
    const [first, again] = await Promise.all([tenants.client('acme'), tenants.client('acme')]);
    expect(again).toBe(first);
    expect(await rejection(tenants.client('bolt'))).toBeInstanceOf(ServiceStartupError);
    tokens.bolt = simulator.appToken;
    await (await tenants.client('bolt')).banks.list();
    expect(asked).toEqual(['acme', 'bolt', 'bolt']);
    await tenants.end('acme');
    await expect(first.banks.list()).rejects.toMatchObject({ kind: 'closed' });
    await (await tenants.client('acme')).banks.list();
    await app.close();
  });

  it('has a row that can be used', async () => {
    const { acme } = (await import(snippets.path('tenants.ts'))) as { acme: ServiceModuleOptions };
    const module = await Test.createTestingModule({ providers: [ServiceClients] })
      .setLogger(new CollectingLogger())
      .compile();
    const client = await module.get(ServiceClients).create({ ...acme, name: 'acme' });
    expect(client.auth.certificate).toBeUndefined();
    await module.close();
  });

  it('has a check of the addresses in a row', async () => {
    const { checkAddresses } = (await import(snippets.path('check-addresses.ts'))) as {
      checkAddresses(options: ServiceModuleOptions): void;
    };
    const { acme } = (await import(snippets.path('tenants.ts'))) as { acme: ServiceModuleOptions };
    checkAddresses(acme);
    checkAddresses({});
    const own = { ...acme.urls, authUrl: 'https://tenant.example' };
    expect(() => checkAddresses({ ...acme, urls: own })).toThrow('https://tenant.example is no address');
    expect(() => checkAddresses({ ...acme, http: { proxy: 'http://tenant.example' } })).toThrow('proxy');
  });
});
