import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ServiceClients,
  ServiceStartupError,
  type ServiceClient,
  type ServiceConfigurationError,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, writeSnippets } from '../helpers/readme.js';
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

  it('has a row of which only the file of the secret is missing', async () => {
    const { acme } = (await import(snippets.path('tenants.ts'))) as { acme: ServiceModuleOptions };
    const module = await Test.createTestingModule({ providers: [ServiceClients] }).compile();
    const error = await rejection(module.get(ServiceClients).create({ name: 'acme', ...acme }));
    expect((error as ServiceConfigurationError).faults).toMatchObject([{ option: 'oauth.clientSecret' }]);
    await module.close();
  });
});
