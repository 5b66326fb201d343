import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type INestApplication, Module, type Type, ValidationPipe } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ServiceConfigurationError,
  ServiceExceptionFilter,
  ServiceModule,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, type Snippets, writeSnippets } from '../helpers/readme.js';
import { startSimulator } from '../helpers/simulators.js';

describe('docs/tokens.md', () => {
  let simulator: ServiceSimulator;
  let snippets: Snippets;
  let app: INestApplication | undefined;

  beforeAll(async () => {
    simulator = await startSimulator();
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

  it('has a client without Nest', async () => {
    const { banksOf } = (await import(snippets.path('without-nest.ts'))) as {
      banksOf(options: ServiceModuleOptions): Promise<unknown>;
    };
    expect(await banksOf(simulator.moduleOptions({ environment: 'sandbox' }))).toHaveLength(10);
    await expect(banksOf({})).rejects.toBeInstanceOf(ServiceConfigurationError);
    while (simulator.openConnections > 0) await new Promise((resolve) => setImmediate(resolve));
  });
});
