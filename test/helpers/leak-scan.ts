import { expect } from '@jest/globals';
import { ServiceApiError, type ServiceModuleOptions } from 'nestjs-service';
import {
  type FaultRule,
  type SimulatorFault,
  type SimulatorModeOptions,
  type TlsAlert,
} from 'nestjs-service/testing';
import { CollectingLogger, everyForm, secretsIn } from './secret-scan.js';
import { startModule, type StartedModule } from './start-module.js';
import { startSimulator } from './simulators.js';

export const MODES = {
  'sandbox/app-token': { environment: 'sandbox', authentication: 'app-token' },
  'sandbox/mtls': { environment: 'sandbox', authentication: 'mtls', oauth: true },
  'sandbox/oauth': { environment: 'sandbox', authentication: 'oauth' },
  'production/mtls': { environment: 'production', authentication: 'mtls', oauth: true },
  'production/oauth': {
    environment: 'production',
    authentication: 'oauth',
    clientCertificate: true,
    oauthMtls: true,
  },
} satisfies Record<string, SimulatorModeOptions>;

/** How much a scan plays. */
interface Extent {
  statuses: number[];
  /** The statuses of answers whose body contains the echo in an unusual place. */
  bodyStatuses: number[];
  redirects: number[];
  alerts: TlsAlert[];
}

/** One of each kind. */
export const SAMPLE: Extent = {
  statuses: [400, 401, 403, 409, 429, 496, 503],
  bodyStatuses: [200, 422],
  redirects: [302],
  alerts: ['unknown_ca'],
};

export const EVERYTHING: Extent = {
  statuses: [
    ...[400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 415, 416, 418, 421, 422, 423, 424],
    ...[425, 426, 428, 429, 431, 451, 495, 496, 500, 501, 502, 503, 504, 505, 507, 508, 511],
  ],
  bodyStatuses: [200, 202, 400, 422, 503],
  redirects: [301, 302, 303, 307, 308],
  alerts: ['unknown_ca', 'bad_certificate', 'certificate_expired', 'certificate_revoked'],
};

/** Bodies that contain the echo in unusual places. */
const oddBodies = (echo: string): string[] => [
  echo,
  `<html><title>${echo}</title></html>`,
  `{"message":${JSON.stringify(echo.repeat(2_000))}}`,
  `{"errors":[{"field":${JSON.stringify(echo)},${JSON.stringify(echo)}:1}],"n":1}`,
  `{"status":${JSON.stringify([echo])},"message":{"text":${JSON.stringify(echo)}}}`,
  `[${JSON.stringify(echo)}]`,
  JSON.stringify(echo),
  `{"message":${JSON.stringify(echo)}`,
  `{"__proto__":{"message":${JSON.stringify(echo)}}}`,
  `{"message":${JSON.stringify(encodeURIComponent(echo))}}`,
  `{"message":${JSON.stringify([...echo].join('\u200b'))}}`,
];

/** Faults of the API. `echo` is the content of a request, as a badly written service might send it back. */
const apiFaults = (echo: string, { statuses, bodyStatuses, redirects, alerts }: Extent): SimulatorFault[] => [
  ...statuses.map((status) => ({
    status,
    json: { status: echo, message: echo },
    headers: { 'x-correlation-id': 'c-1' },
  })),
  ...bodyStatuses.flatMap((status) =>
    oddBodies(echo).map((body) => ({ status, body, headers: { 'content-type': 'application/json' } })),
  ),
  ...redirects.map((status) => ({
    headers: { location: `https://127.0.0.1:9/${encodeURIComponent(echo)}` },
    status,
  })),
  { status: 500, json: {}, headers: { 'x-correlation-id': echo, 'retry-after': echo } },
  'reset',
  'reset-after-headers',
  'reset-handshake',
  'truncate',
  'hang',
  'html',
  'empty',
  { gzipBombBytes: 64 * 1024 * 1024 },
  { trickleMs: 20 },
  ...alerts.map((tlsAlert) => ({ tlsAlert })),
];

const tokenFaults = (echo: string): SimulatorFault[] => [
  ...[400, 401, 403, 429, 500, 503].map((status) => ({
    status,
    json: { error: status === 400 ? 'invalid_client' : echo, error_description: echo },
  })),
  'reset',
  'hang',
  'html',
  'truncate',
  { status: 200, json: null },
  { status: 200, json: [echo] },
  { tokenResponse: { access_token: `bad token ${echo}\r\n` } },
  { tokenResponse: { access_token: undefined } },
  { tokenResponse: { token_type: echo } },
  { tokenResponse: { scope: echo } },
  { tokenResponse: { expires_in: echo } },
];

/** Plays faults in one mode. No error and no log line may contain a secret in any form. Returns how many it played. */
export async function scanForLeaks(mode: keyof typeof MODES, extent: Extent): Promise<number> {
  const simulator = await startSimulator();
  const base = simulator.moduleOptions(MODES[mode]);
  const options: ServiceModuleOptions = {
    ...base,
    http: { timeout: 150, maxResponseBytes: 100_000, retries: 1 },
  };
  const logger = new CollectingLogger();
  const secrets: Record<string, string> = {
    appToken: base.appToken,
    clientSecret: simulator.clientSecret,
    privateKey: simulator.application.privateKey,
  };
  const errors: unknown[] = [];
  const collect = (promise: Promise<unknown>) => promise.catch((error: unknown) => errors.push(error));
  const api = await startModule(options, logger);
  const tokens = await tokensOf(api);
  rememberTokens(secrets, tokens);
  let faults = 0;
  for (const fault of apiFaults([base.appToken, ...tokens].join(' and '), extent)) {
    faults += 1;
    const handshake = fault === 'reset-handshake' || (typeof fault === 'object' && 'tlsAlert' in fault);
    if (handshake) simulator.dropConnections();
    simulator.fail({ ...(handshake ? {} : { path: /v1/ }), times: 4, fault });
    await Promise.all([
      collect(api.banks.list()),
      collect(api.customers.create({ app_user_id: `u-${faults}` })),
    ]);
    await collect(api.http.axiosRef.get('/banks/v1', { signal: AbortSignal.timeout(1) }));
    simulator.clearFaults();
  }
  await collect(api.http.get('https://evil.example/'));
  await api.module.close();
  if (base.oauth) {
    for (const fault of tokenFaults(`a ${simulator.clientSecret} b`)) {
      faults += 1;
      const api = await startModule(options, logger);
      const rule: FaultRule = { face: 'token', times: 4, fault };
      simulator.fail(rule);
      await collect(api.auth.getCustomerToken('c-1', { timeout: 150 }));
      await collect(api.banks.list());
      simulator.clearFaults();
      await api.module.close();
    }
  }
  for (const broken of brokenOptions(base)) await collect(startModule(broken, logger));
  await simulator.stop();

  expect(errors.length).toBeGreaterThan(faults);
  const responses = errors.flatMap((error) => (error instanceof ServiceApiError ? [error.response] : []));
  expect(responses.filter((response) => response?.headers.date !== undefined).length).toBeGreaterThan(20);
  const forms = errors.map((error) => everyForm(error));
  for (const form of [...forms, ...logger.lines.map((line) => everyForm(line))]) {
    expect(secretsIn(form, secrets)).toEqual([]);
  }
  // The app token is the application's id, which the data of an answer may have.
  const { appToken, ...notInData } = secrets;
  expect(appToken).toBeDefined();
  for (const response of responses) expect(secretsIn(everyForm(response), notInData)).toEqual([]);
  for (const form of forms) expect(form).not.toMatch(/isAxiosError|_header|Bearer /);
  const own = errors.filter((error) => !(error instanceof DOMException)) as Error[];
  expect(own.filter(({ cause }) => cause !== undefined)).toEqual([]);
  return faults;
}

/** Requested before the faults begin, so that the scan knows this token. */
async function tokensOf({ auth }: StartedModule): Promise<string[]> {
  const tokens = await Promise.all([
    auth.getApiToken().catch(() => undefined),
    auth.getCustomerToken('c-9').catch(() => undefined),
  ]);
  return tokens.flatMap((token) => (token ? [token.accessToken] : []));
}

function rememberTokens(secrets: Record<string, string>, tokens: string[]): void {
  for (const token of tokens) secrets[`token ${Object.keys(secrets).length}`] = token;
}

/** Start-ups that fail with a secret in the wrong place. */
function brokenOptions(
  base: ServiceModuleOptions & { appToken: string; tls: { privateKey?: string; chain: string } },
): ServiceModuleOptions[] {
  const key = base.tls.privateKey ?? 'not-a-key';
  return [
    { ...base, appToken: `${base.appToken}\r\nx: y` },
    { ...base, appTokenHeader: base.appToken },
    {
      ...base,
      oauth: { clientId: base.appToken, clientSecret: base.appToken, refresh: base.appToken as never },
    },
    { ...base, tls: { ...base.tls, certificate: key, privateKey: key } },
    { ...base, tls: { ...base.tls, certificate: base.tls.chain, chain: key } },
    { ...base, tls: { ...base.tls, privateKey: `${key.slice(0, 150)}` } },
    {
      ...base,
      environment: base.appToken as never,
      urls: { ...base.urls, baseUrl: `https://u:${base.appToken}@x.example` },
    },
  ];
}
