import { beforeEach, describe, expect, it } from '@jest/globals';
import { ServiceApiError, ServiceTokenError } from '../../../lib/errors/index.js';
import { LimitedCheck } from '../../../lib/terminus/limited-check.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';

describe('LimitedCheck', () => {
  let clock: FakeClock;
  let requests: { timeoutMs: number; resolve: () => void; reject: (error: unknown) => void }[];
  let failures: unknown[];
  let check: LimitedCheck;

  beforeEach(() => {
    clock = new FakeClock({ start: Date.UTC(2030, 0, 1) });
    requests = [];
    failures = [];
    check = new LimitedCheck(
      clock,
      (timeoutMs) => new Promise<void>((resolve, reject) => requests.push({ timeoutMs, resolve, reject })),
      (error) => failures.push(error),
    );
  });

  it('makes one request for all who ask within a minute, and another one after it', async () => {
    const first = [check.outcome(3_000), check.outcome(3_000)];
    await settle();
    requests[0].resolve();
    const ok = { ok: true, checkedAt: '2030-01-01T00:00:00.000Z' };
    expect(await Promise.all(first)).toEqual([ok, ok]);
    await clock.advance(59_999);
    expect(await check.outcome(3_000)).toEqual(ok);
    expect(requests).toHaveLength(1);
    await clock.advance(1);
    const next = check.outcome(2_000);
    await settle();
    expect(requests.map(({ timeoutMs }) => timeoutMs)).toEqual([10_000, 10_000]);
    requests[1].resolve();
    expect(await next).toEqual({ ok: true, checkedAt: '2030-01-01T00:01:00.000Z' });
    expect(clock.timers).toBe(0);
  });

  it.each([
    [new ServiceTokenError({ code: 'token_refused', message: 'secret' }), 'token_refused'],
    [new ServiceApiError({ status: 503, message: 'secret', method: 'GET', path: '/' }), 'api_error 503'],
    [new Error('secret'), 'unknown'],
  ])('keeps a failure for the same minute, tells it once, and shows its code alone', async (error, code) => {
    const outcome = check.outcome(3_000);
    await settle();
    requests[0].reject(error);
    const failed = { ok: false, code, checkedAt: '2030-01-01T00:00:00.000Z' };
    expect(await outcome).toEqual(failed);
    await clock.advance(30_000);
    expect(await check.outcome(3_000)).toEqual(failed);
    expect(failures).toEqual([error]);
    expect(requests).toHaveLength(1);
  });

  it('keeps nobody waiting for longer than they want, and the request goes on for the others', async () => {
    const hasty = check.outcome(100);
    const patient = check.outcome(3_000);
    await clock.advance(100);
    expect(await hasty).toEqual({ ok: false, code: 'connection_timeout' });
    requests[0].resolve();
    expect(await patient).toMatchObject({ ok: true });
    expect(await check.outcome(100)).toMatchObject({ ok: true });
    expect(requests).toHaveLength(1);
  });
});
