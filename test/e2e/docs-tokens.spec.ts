import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type INestApplication, Module, type Type, ValidationPipe } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  type ServiceClient,
  ServiceClients,
  ServiceExceptionFilter,
  ServiceModule,
  type ServiceModuleOptions,
  ServiceStartupError,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, type Snippets, writeSnippets } from '../helpers/readme.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { rejection } from '../helpers/start-module.js';

interface Tenants {
  client(tenant: string): Promise<ServiceClient>;
  end(tenant: string): Promise<void>;
}

describe('docs/tokens.md', () => {
  let simulator: ServiceSimulator;
  let snippets: Snippets;
  let app: INestApplication | undefined;

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
    const { fences } = await readDocument('docs/tokens.md');
    snippets = await writeSnippets(fences, { name: 'tokens' });
  });
  afterEach(() => app?.close());
  afterAll(() => Promise.all([simulator.stop(), snippets.remove()]));

  it('has an endpoint of at most 30 lines', async () => {
    const { fences } = await readDocument('docs/tokens.md');
    const endpoint = fences.find(({ file }) => file === 'link-session.controller.ts');
    expect(endpoint?.text.trimEnd().split('\n').length).toBeLessThanOrEqual(30);
  });

  it.each([
    ['no pipe', []],
    ['a ValidationPipe', [new ValidationPipe({ whitelist: true })]],
  ])('has an endpoint for the customer of the signed-in user alone, with %s', async (_name, pipes) => {
    const { LinkSessionController } = (await import(snippets.path('link-session.controller.ts'))) as {
      LinkSessionController: Type;
    };
    const options = simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' });
    @Module({ controllers: [LinkSessionController] })
    class SessionsModule {}
    const testing = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...options, isGlobal: true }), SessionsModule],
    }).compile();
    app = testing.createNestApplication({ logger: false });
    app.useGlobalPipes(...pipes);
    app.useGlobalFilters(new ServiceExceptionFilter());
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/link-session`;
    const post = (headers: Record<string, string>, body: unknown) =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });

    const wish = { permissions: ['identity'], customer_id: 'somebody-else' };
    expect((await post({}, wish)).status).toBe(403);
    const answer = await post({ authorization: 'Bearer session-of-user-42' }, wish);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const { access_token, ...rest } = (await answer.json()) as { access_token: string };
    expect(rest).toEqual({
      app_token: expect.any(String),
      customer_id: 'customer-42',
      permissions: ['identity'],
    });
    expect(simulator.issuedFor(access_token)).toMatchObject({ scope: 'customer.customer-42' });
    expect((await post({ authorization: 'Bearer session-of-user-42' }, { permissions: [] })).status).toBe(
      400,
    );
  });

  it('has a client for each tenant, which is made once and can be ended', async () => {
    const { Tenants, TenantTable } = (await import(snippets.path('tenants.ts'))) as Record<string, Type>;
    const tokens: Record<string, string> = { acme: simulator.appToken, bolt: 'wrong' };
    const asked: string[] = [];
    // The simulator, under the address that the guide allows.
    const { urls: _, ...options } = simulator.moduleOptions({ environment: 'sandbox' });
    const optionsOf = (tenant: string) => {
      asked.push(tenant);
      return Promise.resolve({ ...options, appToken: tokens[tenant], startupCheck: 'fail' });
    };
    const ServiceClientsHere = {
      create: (row: ServiceModuleOptions & { name: string }) =>
        clients.create({ ...row, urls: { sandboxUrl: simulator.urls.sandboxUrl } }),
    };
    const host = await Test.createTestingModule({ providers: [ServiceClients] })
      .setLogger(new CollectingLogger())
      .compile();
    const clients = host.get(ServiceClients);
    const module = await Test.createTestingModule({
      providers: [
        Tenants,
        { provide: ServiceClients, useValue: ServiceClientsHere },
        { provide: TenantTable, useValue: { optionsOf } },
      ],
    }).compile();
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
    await Promise.all([module.close(), host.close()]);
  });

  it('has a check of the addresses in a row', async () => {
    const { checkAddresses } = (await import(snippets.path('tenants.ts'))) as {
      checkAddresses(options: ServiceModuleOptions): void;
    };
    const urls = { baseUrl: 'https://api.service.example', authUrl: 'https://auth.service.example' };
    checkAddresses({ urls });
    checkAddresses({});
    const own = { ...urls, authUrl: 'https://tenant.example' };
    expect(() => checkAddresses({ urls: own })).toThrow('https://tenant.example is no address');
    expect(() => checkAddresses({ urls, http: { proxy: 'http://tenant.example' } })).toThrow('proxy');
  });
});
