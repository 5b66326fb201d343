import { expect, it } from '@jest/globals';
import { ClientSecret } from '../../../../lib/auth/endpoint/client-secret.js';
import { Secret } from '../../../../lib/config/secret.js';
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
