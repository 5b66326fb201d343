import { expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { AppToken } from '../../../lib/config/app-token.js';
import { Secret } from '../../../lib/config/secret.js';
import { FakeClock } from '../../helpers/fake-clock.js';

function setUp() {
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = { log: (line: string) => lines.push(line), warn: (line: string) => lines.push(line) };
  const source = { value: 'first', asked: 0 };
  const appToken = new AppToken(
    new Secret(source.value),
    async () => {
      source.asked += 1;
      if (source.value === '') throw new Error('its function threw');
      return new Secret(source.value);
    },
    clock,
  );
  return { appToken, clock, lines, source, readAgain: () => appToken.readAgain(log) };
}

it('is read again once in 10 s, for all who ask', async () => {
  const { appToken, clock, source, readAgain, lines } = setUp();
  source.value = 'second';
  await Promise.all([readAgain(), readAgain(), readAgain()]);
  expect([appToken.reveal(), source.asked]).toEqual(['second', 1]);
  source.value = 'third';
  await clock.advance(9_999);
  await readAgain();
  expect([appToken.reveal(), source.asked]).toEqual(['second', 1]);
  await clock.advance(1);
  await readAgain();
  expect([appToken.reveal(), source.asked]).toEqual(['third', 2]);
  expect(lines).toEqual(Array(2).fill(expect.stringMatching(/another one is in use now/)));
});

it('stays as it is, with a warning, if it cannot be read', async () => {
  const { appToken, source, readAgain, lines } = setUp();
  source.value = '';
  await readAgain();
  expect(appToken.reveal()).toBe('first');
  expect(lines).toEqual(['The app token was refused, and reading it again failed: its function threw']);
});

it('knows the last three, and shows none', async () => {
  const { appToken, clock, source, readAgain } = setUp();
  for (const value of ['second', 'third', 'fourth']) {
    source.value = value;
    await readAgain();
    await clock.advance(10_000);
  }
  expect(appToken.revealAll()).toEqual(['fourth', 'third', 'second']);
  expect(inspect({ appToken }, { showHidden: true, depth: 9 }) + JSON.stringify({ appToken })).not.toMatch(
    /first|second|third|fourth/,
  );
});

it('one that cannot change is not read', async () => {
  const appToken = new AppToken(new Secret('text'));
  await appToken.readAgain({ log: () => undefined, warn: () => undefined });
  expect(appToken.revealAll()).toEqual(['text']);
});
