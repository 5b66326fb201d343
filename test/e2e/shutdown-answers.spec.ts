import { afterEach, expect, it } from '@jest/globals';
import { ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { startHost, type Platform } from '../helpers/start-host.js';

let simulator: ServiceSimulator;
afterEach(() => simulator.stop());

it.each<Platform>(['express', 'fastify'])(
  'inbound requests that a shutdown ends: 503, and 502 with the doubt where a change was sent (%s)',
  async (platform) => {
    simulator = await ServiceSimulator.start();
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'oauth' });
    const http = { timeout: 600_000, shutdownTimeout: 50, idempotencyHeader: 'Idempotency-Key' };
    const host = await startHost(ServiceModule.forRoot({ ...options, http }), platform);
    simulator.fail({ path: /banks|customers/, times: 9, fault: 'hang' });
    simulator.fail({ when: ({ form }) => form?.scope === 'customer.c-1', times: 9, fault: 'hang' });
    const session = { customer_id: 'c-1', permissions: ['identity'] };
    const answers = [
      host.request('GET', '/banks'),
      host.request('POST', '/link-session', session),
      host.request('POST', '/customers', { app_user_id: 'u-1' }),
    ];
    await Promise.all(
      [/^\/banks/, /^\/customers/].map((path) =>
        simulator.waitForRequest((request) => path.test(request.path)),
      ),
    );
    await simulator.waitForRequest(({ form }) => form?.scope === 'customer.c-1');
    await host.close();
    const [list, connect, create] = await Promise.all(answers);
    for (const { headers } of [list, connect, create]) {
      expect([headers.get('connection'), headers.get('retry-after')]).toEqual(['close', null]);
    }
    const unavailable = 'The service cannot be reached at the moment.';
    for (const { status, body } of [list, connect]) {
      expect(status).toBe(503);
      expect(body).toEqual({ statusCode: 503, message: unavailable, code: 'connection_closed' });
    }
    expect(create.status).toBe(502);
    expect(create.body).toEqual({
      statusCode: 502,
      message: 'The service failed to answer this call. The request may have been carried out all the same.',
      code: 'connection_closed',
    });
  },
);
