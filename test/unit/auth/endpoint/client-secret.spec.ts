import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { ClientSecret } from '../../../../lib/auth/endpoint/client-secret.js';
import {
  keyOf,
  RefusedSecrets,
  type TokenCredentials,
} from '../../../../lib/auth/endpoint/refused-secrets.js';
import { Secret } from '../../../../lib/config/secret.js';
import { ServiceTokenError } from '../../../../lib/errors/index.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';

/** A vault that answers each reading when the test says so. */
function setUp() {
  const readings: { answer: (secret: string) => void; fail: () => void }[] = [];
  const clock = new FakeClock();
  const read = () =>
    new Promise<Secret>((resolve, reject) => {
      const answer = (secret: string): void => resolve(new Secret(secret));
      readings.push({ answer, fail: () => reject(new Error('sealed')) });
    });
  const secret = new ClientSecret(read, clock, String);
  /** It has been read, and was refused: a reading `ageMs` later begins anew. */
  const refusedAfter = async (ageMs: number): Promise<Secret> => {
    const first = secret.read();
    await settle();
    readings[0].answer('old');
    await clock.advance(ageMs);
    return first;
  };
  return { clock, readings, secret, refusedAfter };
}

it('a refused secret that was read again meanwhile, for another scope, is read once more', async () => {
  const { readings, secret, refusedAfter } = setUp();
  const refused = await refusedAfter(1_500);
  const second = secret.read();
  await settle();
  readings[1].answer('old');
  await second;
  const renewed = secret.readAfter(refused);
  await settle();
  readings[2].answer('new');
  expect((await renewed).reveal()).toBe('new');
});

it('a reading that was under way when the secret was refused may be older than the rotation', async () => {
  const { readings, secret, refusedAfter } = setUp();
  const refused = await refusedAfter(1_500);
  const underWay = secret.read();
  await settle();
  const both = [secret.readAfter(refused), secret.readAfter(refused)];
  readings[1].answer('old');
  await underWay;
  await settle();
  // One for both.
  expect(readings).toHaveLength(3);
  readings[2].answer('new');
  for (const renewed of both) expect((await renewed).reveal()).toBe('new');
});

it('a reading under way that brings another secret is enough', async () => {
  const { readings, secret, refusedAfter } = setUp();
  const refused = await refusedAfter(1_500);
  void secret.read();
  const renewed = secret.readAfter(refused);
  await settle();
  readings[1].answer('new');
  expect((await renewed).reveal()).toBe('new');
  expect((await secret.readAfter(refused)).reveal()).toBe('new');
  expect(readings).toHaveLength(2);
});

it('a source that fails is not asked twice: the refusal stays the outcome', async () => {
  const { readings, secret, refusedAfter } = setUp();
  const refused = await refusedAfter(1_500);
  const underWay = secret.read().catch(() => 'failed');
  const renewed = secret.readAfter(refused).catch(() => 'failed');
  await settle();
  readings[1].fail();
  expect([await underWay, await renewed]).toEqual(['failed', 'failed']);
  expect(readings).toHaveLength(2);
});

it('of a refusal that is remembered, one reading since is enough, also one that failed', async () => {
  const { clock, readings, secret, refusedAfter } = setUp();
  const refused = await refusedAfter(100);
  const refusedAt = clock.monotonic();
  const both = [secret.readAfter(refused), secret.readAfter(refused, refusedAt)];
  await settle();
  expect(readings).toHaveLength(2);
  readings[1].answer('old');
  for (const renewed of both) expect((await renewed).reveal()).toBe('old');
  await clock.advance(2_000);
  for (let caller = 0; caller < 100; caller += 1) await secret.readAfter(refused, refusedAt);
  expect(readings).toHaveLength(2);
  const again = secret.readAfter(refused, clock.monotonic()).catch(() => 'failed');
  await settle();
  readings[2].fail();
  expect(await again).toBe('failed');
  expect((await secret.readAfter(refused, clock.monotonic())).reveal()).toBe('old');
  expect(readings).toHaveLength(3);
});

it('a reading that began before the remembered refusal is followed by one, which all share', async () => {
  const { clock, readings, secret, refusedAfter } = setUp();
  const refused = await refusedAfter(1_500);
  void secret.read();
  await clock.advance(100);
  const refusedAt = clock.monotonic();
  const all = [secret.readAfter(refused), ...[1, 2].map(() => secret.readAfter(refused, refusedAt))];
  await settle();
  readings[1].answer('old');
  await settle();
  expect(readings).toHaveLength(3);
  readings[2].answer('new');
  for (const renewed of all) expect((await renewed).reveal()).toBe('new');
});

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
