import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import {
  keyOf,
  RefusedSecrets,
  type TokenCredentials,
} from '../../../../lib/auth/endpoint/refused-secrets.js';
import { Secret } from '../../../../lib/config/secret.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';

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
  for (let number = 0; number <= 1_000; number += 1)
    refused.remember(keyOf(SENT), `customer.${number}`, forbidden);
  expect(refused.find(keyOf(SENT), 'customer.0')).toBeUndefined();
  expect(refused.find(keyOf(SENT), 'customer.1')).toMatchObject({ status: 403, retryAfter: 10 });
  expect(refused.find(keyOf(SENT), 'customer.1000')).toBeDefined();
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
  refused.remember(keyOf(sent), 'api', invalidClient);
  expect(refused.find(keyOf({ ...sent, ...changed }), 'api')).toBeUndefined();
  expect(refused.find(keyOf({ ...sent, secret: new Secret('s') }), 'customer.1')).toMatchObject({
    retryAfter: 10,
  });
});

it.each([
  [10, false],
  [60, true],
])('for %i s, health checks: %s', async (seconds, isProbe) => {
  const clock = new FakeClock();
  const refused = new RefusedSecrets(clock);
  refused.remember(keyOf(SENT), 'api', invalidClient);
  await clock.advance(seconds * 1_000 - 1);
  expect(refused.find(keyOf(SENT), 'api', isProbe)).toMatchObject({ retryAfter: 1 });
  expect(refused.refusedAt(keyOf(SENT), 'api', isProbe)).toBeDefined();
  await clock.advance(1);
  expect(refused.find(keyOf(SENT), 'api', isProbe)).toBeUndefined();
  expect(refused.refusedAt(keyOf(SENT), 'api', isProbe)).toBeUndefined();
});

it('a scope that is refused again is the newest', () => {
  const refused = new RefusedSecrets(new FakeClock());
  const refuse = (number: number): void => refused.remember(keyOf(SENT), `customer.${number}`, forbidden);
  for (let number = 0; number < 1_000; number += 1) refuse(number);
  refuse(0);
  refuse(1_000);
  expect(refused.find(keyOf(SENT), 'customer.0')).toBeDefined();
  expect(refused.find(keyOf(SENT), 'customer.1')).toBeUndefined();
});

it('keeps no secret', () => {
  const refused = new RefusedSecrets(new FakeClock());
  refused.remember(keyOf({ ...SENT, secret: new Secret('s3cret-value') }), 'api', invalidClient);
  expect(inspect(refused, { depth: 9, showHidden: true })).not.toContain('s3cret-value');
});

describe('clients that begin at once with the same credentials', () => {
  /** Requests that the test ends. */
  function setUp() {
    const refused = new RefusedSecrets(new FakeClock());
    const sent: { grant: () => void; refuse: () => void; fail: () => void }[] = [];
    const ask = (
      changed: Partial<TokenCredentials> = {},
      scope = 'api',
      { signal } = new AbortController(),
    ) => {
      const credentials = keyOf({ ...SENT, ...changed });
      const request = () =>
        new Promise<string>((resolve, reject) =>
          sent.push({
            grant: () => resolve('token'),
            refuse: () => (refused.remember(credentials, scope, invalidClient), reject(invalidClient)),
            fail: () => reject(new Error('reset')),
          }),
        );
      return refused.guard(credentials, scope, { signal }, request).catch((error: Error) => error.message);
    };
    return { sent, ask };
  }

  it('wait for the first: its refusal is that of all', async () => {
    const { sent, ask } = setUp();
    const all = Array.from({ length: 40 }, () => ask());
    sent[0].refuse();
    const [first, ...others] = await Promise.all(all);
    expect([sent.length, first]).toEqual([1, 'no']);
    for (const message of others) expect(message).toMatch(/^no This is remembered/);
  });

  it.each(['grant', 'fail'] as const)('go on freely where it ends otherwise: %s', async (end) => {
    const { sent, ask } = setUp();
    const all = Array.from({ length: 3 }, () => ask());
    sent[0][end]();
    await settle();
    expect(sent).toHaveLength(3);
    for (const { grant } of sent.slice(1)) grant();
    expect((await Promise.all(all)).slice(1)).toEqual(['token', 'token']);
  });

  it('do not wait once they were accepted, until they are refused', async () => {
    const { sent, ask } = setUp();
    void ask();
    sent[0].grant();
    await settle();
    void ask();
    void ask({}, 'customer.1');
    const third = ask();
    expect(sent).toHaveLength(4);
    sent[3].refuse();
    expect(await third).toBe('no');
    expect(await ask()).toMatch(/remembered/);
  });

  it('wait for none with other credentials, and the api token for no customer', () => {
    const { sent, ask } = setUp();
    void ask();
    for (const other of [
      { tokenUrl: 'https://other.example' },
      { clientId: 'x' },
      { secret: new Secret('x') },
    ]) {
      void ask(other);
    }
    void ask({ fingerprint256: 'AA' });
    void ask({}, 'customer.1');
    expect(sent).toHaveLength(6);
  });

  it('wait no longer than they want to', async () => {
    const { sent, ask } = setUp();
    const controller = new AbortController();
    void ask();
    const waiting = ask({}, 'api', controller);
    controller.abort(new Error('changed my mind'));
    expect(await waiting).toBe('changed my mind');
    expect(sent).toHaveLength(1);
  });

  it('are 1,000 that are known as accepted: the oldest goes', async () => {
    const { sent, ask } = setUp();
    for (let tenant = 0; tenant <= 1_000; tenant += 1) {
      void ask({ clientId: `client-${tenant}` });
      sent[tenant].grant();
      await settle();
    }
    for (const clientId of ['client-1', 'client-0']) void [ask({ clientId }), ask({ clientId })];
    expect(sent).toHaveLength(1_001 + 2 + 1);
  });
});
