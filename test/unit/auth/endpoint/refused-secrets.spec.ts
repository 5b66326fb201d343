import { expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { RefusedSecrets, type TokenCredentials } from '../../../../lib/auth/endpoint/refused-secrets.js';
import { Secret } from '../../../../lib/config/secret.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

const SENT = { tokenUrl: 'https://auth.example/oauth2/token', clientId: 'client-1', secret: new Secret('s') };
const forbidden = new ServiceTokenError({ code: 'token_refused', message: 'no', status: 403 });
const invalidClient = new ServiceTokenError({
  code: 'token_refused',
  error: 'invalid_client',
  message: 'no',
  status: 401,
});

it('remembers 1,000 refusals at most: the oldest goes', () => {
  const refused = new RefusedSecrets(new FakeClock());
  for (let number = 0; number <= 1_000; number += 1) refused.remember(SENT, `customer.${number}`, forbidden);
  expect(refused.find(SENT, 'customer.0')).toBeUndefined();
  expect(refused.find(SENT, 'customer.1')).toMatchObject({ status: 403, retryAfter: 10 });
  expect(refused.find(SENT, 'customer.1000')).toBeDefined();
});

it.each<Partial<TokenCredentials>>([
  { tokenUrl: 'https://auth.other/oauth2/token' },
  { clientId: 'client-2' },
  { secret: new Secret('t') },
  { fingerprint256: 'BB' },
  { fingerprint256: undefined },
])('counts for the same again, not with %j', (changed) => {
  const refused = new RefusedSecrets(new FakeClock());
  const sent = { ...SENT, fingerprint256: 'AA' };
  refused.remember(sent, 'api', invalidClient);
  expect(refused.find({ ...sent, ...changed }, 'api')).toBeUndefined();
  expect(refused.find({ ...sent, secret: new Secret('s') }, 'customer.1')).toMatchObject({ retryAfter: 10 });
});

it('for 10 s', async () => {
  const clock = new FakeClock();
  const refused = new RefusedSecrets(clock);
  refused.remember(SENT, 'api', invalidClient);
  await clock.advance(9_999);
  expect(refused.find(SENT, 'api')).toMatchObject({ retryAfter: 1 });
  await clock.advance(1);
  expect(refused.find(SENT, 'api')).toBeUndefined();
});

it('a scope that is refused again is the newest', () => {
  const refused = new RefusedSecrets(new FakeClock());
  const refuse = (number: number): void => refused.remember(SENT, `customer.${number}`, forbidden);
  for (let number = 0; number < 1_000; number += 1) refuse(number);
  refuse(0);
  refuse(1_000);
  expect(refused.find(SENT, 'customer.0')).toBeDefined();
  expect(refused.find(SENT, 'customer.1')).toBeUndefined();
});

it('keeps no secret', () => {
  const refused = new RefusedSecrets(new FakeClock());
  refused.remember({ ...SENT, secret: new Secret('s3cret-value') }, 'api', invalidClient);
  expect(inspect(refused, { depth: 9, showHidden: true })).not.toContain('s3cret-value');
});
