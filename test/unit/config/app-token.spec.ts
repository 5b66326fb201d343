import { expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { AppToken, FILE_INTERVAL_MS } from '../../../lib/config/app-token.js';
import { Secret } from '../../../lib/config/secret.js';
import { FakeClock } from '../../helpers/fake-clock.js';

function setUp(intervalMs?: number) {
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = { log: (line: string) => lines.push(line), warn: (line: string) => lines.push(line) };
  const source = { value: 'first', asked: 0 };
  const appToken = new AppToken(
    new Secret(source.value),
    async () => {
      source.asked += 1;
      const { value } = source;
      await Promise.resolve();
      if (value === '') throw new Error('its function threw');
      return value === 'never' ? new Promise(() => undefined) : new Secret(value);
    },
    intervalMs,
    clock,
  );
  return { appToken, clock, lines, log, source, readAgain: () => appToken.readAgain(log) };
}

it('is read again once in 10 s, for all who ask, and is in use once the service has taken it', async () => {
  const { appToken, clock, source, readAgain, lines, log } = setUp();
  source.value = 'second';
  await readAgain();
  await readAgain();
  expect([appToken.reveal(), appToken.toTry(['first']), source.asked]).toEqual(['first', 'second', 1]);
  appToken.accepted('second', log);
  expect([appToken.reveal(), appToken.toTry(['first']), appToken.toTry(['second'])]).toEqual([
    'second',
    'second',
    undefined,
  ]);
  source.value = 'third';
  await clock.advance(9_999);
  await readAgain();
  expect(source.asked).toBe(1);
  await clock.advance(1);
  await readAgain();
  expect([appToken.toTry(['second']), source.asked]).toEqual(['third', 2]);
  expect(lines).toEqual(['The app token has changed: calls use the new one.']);
});

it('is read once more for those who joined a reading, which may have begun before the rotation', async () => {
  const { appToken, source, readAgain } = setUp();
  const all = [readAgain(), readAgain(), readAgain()];
  source.value = 'second';
  await Promise.all(all);
  expect([appToken.toTry(['first']), source.asked]).toEqual(['second', 2]);
  await Promise.all([readAgain(), readAgain()]);
  expect(source.asked).toBe(2);
});

it('of a file is read ten times in a second at most', async () => {
  const { clock, source, readAgain } = setUp(FILE_INTERVAL_MS);
  for (let call = 0; call < 20; call += 1) {
    await readAgain();
    await clock.advance(50);
  }
  expect(source.asked).toBe(10);
});

it('stays as it is, with a warning, if it cannot be read, or not in 8 s', async () => {
  const { appToken, clock, source, readAgain, lines } = setUp();
  source.value = '';
  await readAgain();
  source.value = 'never';
  await clock.advance(10_000);
  const waiting = readAgain();
  await clock.advance(8_000);
  await waiting;
  expect(appToken.reveal()).toBe('first');
  const failed = 'A call was refused, and reading the app token again failed: ';
  expect(lines).toEqual([`${failed}its function threw`, `${failed}there was no answer within 8 s`]);
  expect(clock.timers).toBe(0);
});

it('knows the last ones, that in use among them, and shows none', async () => {
  const { appToken, clock, source, readAgain } = setUp();
  for (const value of ['second', 'third', 'fourth', 'fifth']) {
    source.value = value;
    await readAgain();
    await clock.advance(10_000);
  }
  expect(appToken.revealAll()).toEqual(['fifth', 'first', 'fourth', 'third']);
  expect(inspect({ appToken }, { showHidden: true, depth: 9 }) + JSON.stringify({ appToken })).not.toMatch(
    /first|third|fourth|fifth/,
  );
});

it('one that cannot change is not read', async () => {
  const appToken = new AppToken(new Secret('text'));
  await appToken.readAgain({ warn: () => undefined });
  expect(appToken.revealAll()).toEqual(['text']);
});
