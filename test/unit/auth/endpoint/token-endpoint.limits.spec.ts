import { Agent } from 'node:http';
import { expect, it } from '@jest/globals';
import { ClientSecret } from '../../../../lib/auth/endpoint/client-secret.js';
import { TokenEndpoint } from '../../../../lib/auth/endpoint/token-endpoint.js';
import { Secret } from '../../../../lib/config/secret.js';
import { type ExchangeRequest } from '../../../../lib/exchange/exchange.types.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

const GRANTED = { access_token: 'token', token_type: 'bearer', expires_in: 600, scope: 'api' };

it('an exchange has the time that reading the secret left, half of it to connect, and 1 MiB for its answer', async () => {
  const clock = new FakeClock();
  const exchanges: ExchangeRequest[] = [];
  const endpoint = new TokenEndpoint({
    userAgent: 'spec/1',
    place: {
      url: new URL('https://auth.example/oauth2/token'),
      option: 'urls.authUrl',
      apiOption: 'urls.baseUrl',
      describeOption: String,
    },
    clientId: 'c',
    clientSecret: new ClientSecret(
      async () => {
        await clock.advance(2_000);
        return new Secret('s');
      },
      clock,
      String,
    ),
    exchange: async (request) => {
      exchanges.push(request);
      return {
        status: 200,
        statusText: '',
        reusedSocket: false,
        untilClose: false,
        headers: {},
        body: Buffer.from(JSON.stringify(GRANTED)),
      };
    },
    agent: () => new Agent(),
    clock,
  });
  const { signal } = new AbortController();
  await endpoint.request('api', { signal, timeoutMs: 5_000, accepts: () => true, isAwaited: () => true });
  expect(exchanges).toMatchObject([
    { timeoutMs: 3_000, connectTimeoutMs: 1_500, maxResponseBytes: 1_048_576, signal },
  ]);
});
