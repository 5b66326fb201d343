import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { HealthIndicatorService } from '@nestjs/terminus';
import { ServiceAuthService } from '../../../lib/auth/service-auth.service.js';
import { BanksService } from '../../../lib/banks/banks.service.js';
import {
  type CertificateSummary,
  ServiceApiError,
  ServiceConnectionError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { getServiceToken } from '../../../lib/service-token.js';
import {
  ServiceHealthIndicator,
  type ServiceHealthOptions,
} from '../../../lib/terminus/service-health.indicator.js';
import { type IdentityStatus } from '../../../lib/tls/client-identity.js';
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
    check = new LimitedCheck(clock, {
      request: (timeoutMs) =>
        new Promise<void>((resolve, reject) => requests.push({ timeoutMs, resolve, reject })),
      onFailure: (error) => failures.push(error),
    });
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
    [new ServiceTokenError({ code: 'token_refused', status: 400, message: 'secret' }), 'token_refused'],
    [new ServiceConnectionError({ kind: 'refused', message: 'secret' }), 'connection_refused'],
    [new ServiceApiError({ status: 503, message: 'secret', method: 'GET', path: '/' }), 'api_error 503'],
    [new Error('secret'), 'unknown'],
  ])(
    'asks 10 s after a failure, tells it once a minute, and shows its code alone: %s',
    async (error, code) => {
      const outcome = check.outcome(3_000);
      await settle();
      requests[0].reject(error);
      const failed = { ok: false, code, checkedAt: '2030-01-01T00:00:00.000Z' };
      expect(await outcome).toEqual(failed);
      await clock.advance(9_999);
      expect(await check.outcome(3_000)).toEqual(failed);
      expect(requests).toHaveLength(1);
      await clock.advance(1);
      const next = check.outcome(3_000);
      await settle();
      requests[1].reject(error);
      expect(await next).toMatchObject({ ok: false, code });
      expect(failures).toEqual([error]);
      await clock.advance(50_000);
      const later = check.outcome(3_000);
      await settle();
      requests[2].reject(error);
      await later;
      expect(failures).toHaveLength(2);
    },
  );

  it('tells another failure at once', async () => {
    for (const [index, kind] of (['refused', 'dns'] as const).entries()) {
      const outcome = check.outcome(3_000);
      await settle();
      requests[index].reject(new ServiceConnectionError({ kind, message: 'secret' }));
      await outcome;
      await clock.advance(10_000);
    }
    expect(failures).toHaveLength(2);
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

describe('ServiceHealthIndicator', () => {
  const validTo = new Date('2030-01-01T00:00:00Z');
  const certificate = { validTo } as CertificateSummary;
  const lines: string[] = [];
  beforeEach(() => {
    lines.length = 0;
    const warn = (line: string, label: string): void => void lines.push(`${label}: ${line}`);
    Logger.overrideLogger({ log: () => undefined, error: () => undefined, warn });
  });
  afterEach(() => Logger.overrideLogger(false));

  interface Given {
    status?: IdentityStatus;
    /** False: none is at hand. Absent: there is no OAuth. */
    hasApiToken?: boolean;
    failure?: Error;
  }

  function indicator({ status = { healthy: true }, hasApiToken, failure }: Given = {}) {
    const asked: unknown[] = [];
    const request = (what: string) => (options: object) => {
      asked.push([what, options]);
      return failure ? Promise.reject(failure) : Promise.resolve([]);
    };
    const session = {
      up: (details: object) => ({ status: 'up', ...details }),
      down: (details: object) => ({ status: 'down', ...details }),
    };
    const notConfigured = new ServiceTokenError({ code: 'oauth_not_configured', message: 'none' });
    const auth = {
      identityStatus: status,
      apiTokenStatus: hasApiToken ? {} : undefined,
      getApiToken: hasApiToken === undefined ? () => Promise.reject(notConfigured) : request('token'),
    };
    const health = new ServiceHealthIndicator(
      { check: () => session } as never,
      auth as never,
      { list: request('banks') } as never,
    );
    return { health, asked, check: (options?: ServiceHealthOptions) => health.isHealthy('service', options) };
  }

  it.each<[string, Given, ServiceHealthOptions, object]>([
    ['nothing to look at', {}, {}, { status: 'up' }],
    ['a token at hand', { hasApiToken: true }, {}, { status: 'up', token: { ok: true } }],
    [
      'a certificate',
      { status: { healthy: true, certificate, daysLeft: 7 } },
      { minCertificateDays: 7 },
      { status: 'up', certificate: { validTo: '2030-01-01T00:00:00.000Z', daysLeft: 7 } },
    ],
    [
      'one that ends soon',
      { status: { healthy: true, certificate, daysLeft: 6 } },
      { minCertificateDays: 7 },
      {
        status: 'down',
        certificate: { validTo: '2030-01-01T00:00:00.000Z', daysLeft: 6 },
        message:
          'The client certificate, or one that is sent with it, expires in 6 days, and there should be 7 left.',
      },
    ],
    [
      'one that has expired',
      { status: { healthy: false, daysLeft: -1 } },
      {},
      { status: 'down', message: 'The client certificate, or one that is sent with it, has expired.' },
    ],
    [
      'a new one that cannot be used',
      {
        status: {
          healthy: true,
          certificate,
          daysLeft: 9,
          lastReloadFault: {
            at: new Date(0),
            faults: ['tls.privateKey', 'tls.privateKey'].map((option) => ({ option, message: 'secret' })),
          },
        },
      },
      {},
      {
        status: 'up',
        certificate: {
          validTo: '2030-01-01T00:00:00.000Z',
          daysLeft: 9,
          lastReloadFault: { at: '1970-01-01T00:00:00.000Z', options: ['tls.privateKey'] },
        },
      },
    ],
  ])('%s', async (_, given, options, expected) => {
    const { check, asked } = indicator(given);
    expect(await check(options)).toEqual(expected);
    expect(asked).toEqual([]);
  });

  it('asks for a token where there is none, and the banks where it is told to', async () => {
    const { check, asked } = indicator({ hasApiToken: false });
    const checked = { ok: true, checkedAt: expect.any(String) };
    expect(await check({ ping: true })).toEqual({ status: 'up', token: checked, ping: checked });
    expect(asked).toEqual([
      ['token', { timeout: 10_000, once: true }],
      ['banks', { timeout: 10_000 }],
    ]);
    expect(lines).toEqual([]);
  });

  it('is down where they fail; what shows nothing goes to the caller, the rest to the log', async () => {
    const failure = new ServiceTokenError({ code: 'token_refused', message: 'invalid_client', status: 401 });
    const { check } = indicator({ hasApiToken: false, failure });
    expect(await check({ ping: true })).toMatchObject({
      status: 'down',
      message:
        'No token can be had (token_refused). The service does not answer as it should (token_refused).',
    });
    expect(lines).toEqual([
      'ServiceHealthIndicator: No token could be had: token_refused: invalid_client',
      'ServiceHealthIndicator: The banks path did not answer as it should: token_refused: invalid_client',
    ]);
    const other = indicator({ hasApiToken: false, failure: new Error('no answer') });
    expect(await other.check()).toMatchObject({ message: 'No token can be had (unknown).' });
    expect(lines.at(-1)).toBe('ServiceHealthIndicator: No token could be had: Error: no answer');
  });

  it('is down once the application ends, and asks for nothing then', async () => {
    const { check, health, asked } = indicator({ hasApiToken: false });
    health.beforeApplicationShutdown();
    expect(await check({ ping: true })).toEqual({
      status: 'down',
      message: 'The application is shutting down.',
    });
    expect(asked).toEqual([]);
  });

  it.each([{ minCertificateDays: -1 }, { minCertificateDays: '7' }, { timeout: -1 }])(
    'refuses %j',
    async (options) => {
      await expect(indicator().check(options as never)).rejects.toMatchObject({ code: 'invalid_request' });
    },
  );

  it('of a named module asks that module', () => {
    const { provide, inject, useFactory } = ServiceHealthIndicator.forModule('ksa');
    expect([provide, inject]).toEqual([
      getServiceToken(ServiceHealthIndicator, 'ksa'),
      [
        HealthIndicatorService,
        getServiceToken(ServiceAuthService, 'ksa'),
        getServiceToken(BanksService, 'ksa'),
      ],
    ]);
    expect(useFactory({}, {}, {})).toBeInstanceOf(ServiceHealthIndicator);
  });
});
