import { describe, expect, it } from '@jest/globals';
import { SeenAnswers } from '../../../../lib/cli/doctor/seen-answers.js';
import { type ExchangeRequest, type ExchangeResponse } from '../../../../lib/exchange/exchange.types.js';

const NOW = Date.UTC(2030, 5, 1);
const CERTIFICATE = {
  subject: 'CN=app',
  issuer: 'CN=Root',
  fingerprint256: 'AB',
  validFrom: new Date(NOW - 86_400_000),
  validTo: new Date(NOW + 86_400_000),
};

async function clockBy(date: string) {
  const response = { status: 200, headers: { date } } as ExchangeResponse;
  const answers = new SeenAnswers(
    () => Promise.resolve(response),
    () => NOW,
  );
  const request = { url: new URL('https://api.bank') } as unknown as ExchangeRequest;
  await answers.exchange(request);
  return answers.judgeClock(CERTIFICATE);
}

describe('the clock by the Date of answers', () => {
  it.each([
    ['Sat, 01 Jun 2030 00:00:00 GMT', 'ok'],
    ['Sat, 01 Jun 2030 00:05:00 GMT', 'warning'],
    ['Sat, 01 Jun 2031 00:00:00 GMT', 'failed'],
    // The last moment that a Date can hold, and what no clock shows.
    ['Sat, 13 Sep 275760 00:00:00 GMT', 'skipped'],
    ['\u001b[31m', 'skipped'],
  ])('%j: %s', async (date, status) => {
    expect(await clockBy(date)).toMatchObject({ status });
  });
});
