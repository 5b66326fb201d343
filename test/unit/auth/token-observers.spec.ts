import { expect, it } from '@jest/globals';
import { TokenObserver } from '../../../lib/auth/token-observers.js';
import { ServiceTokenError } from '../../../lib/errors/index.js';
import { SILENT } from '../../../lib/exchange/io.js';
import { Telemetry } from '../../../lib/telemetry/telemetry.js';
import { describeOption } from '../../helpers/describe-option.js';

const error = new ServiceTokenError({
  code: 'token_unavailable',
  message: 'It is down.',
  hint: 'Check urls.authUrl.',
  options: ['urls.authUrl'],
  scope: 'api',
});

it('logs failures that no caller gets, and no others', () => {
  const lines: string[] = [];
  const log = { ...SILENT, warn: (line: string) => void lines.push(line) };
  const observer = new TokenObserver(new Telemetry(), log, describeOption('ksa'));
  observer.failed(error, 2);
  expect(lines).toEqual([]);
  observer.failed(error, 0);
  observer.failed(new Error('not ours, so it may hold anything'), 0);
  expect(lines).toEqual([
    'A token request that no caller waits for failed: token_unavailable: It is down. Check urls.authUrl (SERVICE_KSA_AUTH_URL).',
  ]);
});

it("counts requests, failures by their code, and hits, with the module's attributes", () => {
  const counted: unknown[] = [];
  const counter = (name: string) => ({
    add: (value: number, attributes: unknown) => counted.push([name, value, attributes]),
  });
  const attributes = { 'nestjs_service.module': 'ksa' };
  const telemetry = { attributes, tokenRequests: counter('requests'), tokenCacheHits: counter('hits') };
  const observer = new TokenObserver(telemetry as unknown as Telemetry, SILENT, describeOption('ksa'));
  observer.succeeded();
  observer.failed(error, 1);
  observer.failed(new Error('other'), 1);
  observer.servedFromCache();
  expect(counted).toEqual([
    ['requests', 1, attributes],
    ['requests', 1, { ...attributes, 'error.type': 'token_unavailable' }],
    ['requests', 1, { ...attributes, 'error.type': 'unknown' }],
    ['hits', 1, attributes],
  ]);
});
