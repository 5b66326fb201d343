import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  LinkSdkService,
  ServiceApiError,
  type ServiceError,
  type ServiceHttpOptions,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { type ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { run } from '../../lib/cli/doctor.js';
import { blockEventLoop } from '../helpers/block-event-loop.js';
import { commandIo } from '../helpers/command-io.js';
import { hangingRelay, type HangingRelay } from '../helpers/hanging-relay.js';
import { freePort } from '../helpers/loopback.js';
import { startNginx } from '../helpers/nginx.js';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { readDocument } from '../helpers/readme.js';
import { startSimulator } from '../helpers/simulators.js';
import { rejection, type StartedModule, startModule } from '../helpers/start-module.js';
import { until } from '../helpers/until.js';

/** Connections over real TLS that first hang and then respond. The tests mostly wait, so they run at the same time. */
describe('An attempt that hangs', () => {
  interface Started extends StartedModule {
    simulator: ServiceSimulator;
    create: (timeout?: number) => Promise<unknown>;
    fail: (fault: SimulatorFault, times?: number) => void;
  }
  type Way = { to: 'baseUrl' | 'authUrl' | 'proxy'; hang: number };
  const closing: (() => Promise<unknown>)[] = [];
  afterAll(() => Promise.all(closing.map((close) => close())));

  /** An application with a simulator of its own. */
  async function start(http: ServiceHttpOptions): Promise<Started> {
    const simulator = await startSimulator();
    const options = simulator.moduleOptions({ authentication: 'mtls', oauth: true });
    return startWith(simulator, { ...options, http });
  }

  async function startWith(simulator: ServiceSimulator, options: ServiceModuleOptions): Promise<Started> {
    const started = await startModule(options);
    closing.push(async () => {
      await started.module.close();
      await simulator.stop();
    });
    return {
      ...started,
      simulator,
      create: (timeout) => started.customers.create({ app_user_id: randomUUID() }, { timeout }),
      fail: (fault, times = 1) => simulator.fail({ path: /^\/(banks|customers)/, times, fault }),
    };
  }

  /** The way to the API or to the token endpoint leads through a relay, or the proxy is one. */
  async function through(
    { to, hang }: Way,
    http: ServiceHttpOptions,
  ): Promise<Started & { relay: HangingRelay }> {
    const simulator = await startSimulator();
    const options = simulator.moduleOptions({ authentication: 'mtls', oauth: true });
    const url = new URL(options.urls[to === 'authUrl' ? to : 'baseUrl'] ?? '');
    const relay = await hangingRelay(Number(url.port), { proxy: to === 'proxy' });
    relay.hang = hang;
    closing.push(() => relay.close());
    url.port = String(relay.port);
    const way =
      to === 'proxy'
        ? { http: { ...http, proxy: relay.url } }
        : { http, urls: { ...options.urls, [to]: url.href } };
    return { ...(await startWith(simulator, { ...options, ...way })), relay };
  }

  it.concurrent('is not ended by default for a GET whose response takes most of the time', async () => {
    const { banks, fail, simulator } = await start({ timeout: 10_000 });
    fail({ delayMs: 6_000 });
    await banks.list();
    expect(simulator.apiRequests).toHaveLength(1);
  });

  it.concurrent('is repeated for a GET as often as http.retries says', async () => {
    const { banks, fail, simulator } = await start({ timeout: 10_000, attemptTimeout: 1_500 });
    fail('hang', 2);
    await banks.list();
    expect(simulator.apiRequests).toHaveLength(3);
  });

  it.concurrent("is repeated for a GET within the call's own attemptTimeout and retries", async () => {
    const { banks, fail, simulator } = await start({ timeout: 10_000, retries: 0 });
    fail('hang');
    await banks.list({ retries: 1, attemptTimeout: 1_500 });
    expect(simulator.apiRequests).toHaveLength(2);
  });

  it.concurrent('has all the remaining time if it is the last one of a GET', async () => {
    const { banks, fail, simulator } = await start({ timeout: 10_000, attemptTimeout: 1_500, retries: 1 });
    fail('hang');
    fail({ delayMs: 2_000 });
    await banks.list();
    expect(simulator.apiRequests).toHaveLength(2);
  });

  it.concurrent('ends at attemptTimeout if the body of a GET does not end', async () => {
    const { banks, fail, simulator } = await start({ timeout: 10_000, attemptTimeout: 1_500 });
    fail({ trickleMs: 20 });
    await banks.list();
    expect(simulator.apiRequests).toHaveLength(2);
  });

  it.concurrent('has the whole time for a POST that was sent, and is not repeated', async () => {
    const { create, fail, simulator } = await start({ timeout: 10_000, attemptTimeout: 300 });
    fail({ delayMs: 600 });
    await create();
    expect(simulator.apiRequests).toHaveLength(1);
    fail('hang');
    expect(await rejection(create(1_500))).toMatchObject({ kind: 'timeout', outcomeUnknown: true });
    expect(simulator.apiRequests).toHaveLength(2);
  });

  it.concurrent.each([
    ['a server that accepts and says nothing', 'baseUrl', { connectTimeout: 1_500 }],
    ['a server that accepts and says nothing, with a short time limit', 'baseUrl', { timeout: 8_000 }],
    ['a proxy that never answers CONNECT', 'proxy', { connectTimeout: 1_500 }],
  ] as const)('is repeated for a POST on another connection after %s', async (_, to, http) => {
    const { create, relay, simulator } = await through({ to, hang: 1 }, http);
    await create();
    expect(relay.connections).toBe(2);
    expect(simulator.apiRequests).toHaveLength(1);
  });

  it.concurrent('gives an error that nothing was done if there is never a connection', async () => {
    const { create, relay } = await through({ to: 'baseUrl', hang: Infinity }, { connectTimeout: 100 });
    expect(await rejection(create())).toMatchObject({
      kind: 'timeout',
      reason: 'ERR_CONNECT_TIMEOUT',
      outcomeUnknown: false,
      hint: expect.stringContaining('http.connectTimeout'),
    });
    expect(relay.connections).toBe(3);
  });

  it.concurrent('gives an error that nothing was done if there is never a tunnel', async () => {
    const { create } = await through({ to: 'proxy', hang: Infinity }, { connectTimeout: 100, retries: 0 });
    // The tunnel's limit and the call's are the same: on a busy machine either may be seen first.
    const kind: unknown = expect.stringMatching(/^(timeout|proxy)$/);
    expect(await rejection(create())).toMatchObject({ kind, outcomeUnknown: false });
  });

  it.concurrent('does not include the wait for a free connection', async () => {
    const limits = { maxSockets: 1, connectTimeout: 1_500, attemptTimeout: 2_000 };
    const { create, banks, fail, simulator } = await start(limits);
    fail({ delayMs: 700 }, 4);
    await Promise.all([create(), create(), banks.list(), banks.list()]);
    expect(simulator.apiRequests).toHaveLength(4);
  });

  it.concurrent('is not limited by connectTimeout on a reused connection', async () => {
    const { create, fail, relay } = await through({ to: 'baseUrl', hang: 0 }, { connectTimeout: 1_500 });
    await create();
    fail({ delayMs: 2_000 });
    await create();
    expect(relay.connections).toBe(1);
  });

  it.concurrent("with http.idleTimeout: 0 each call connects, also the application's own", async () => {
    const { create, relay, auth } = await through({ to: 'baseUrl', hang: 0 }, { idleTimeout: 0 });
    await create();
    await create();
    expect(relay.connections).toBe(2);
    const own = get(`https://127.0.0.1:${relay.port}`, { agent: auth.httpsAgent });
    const [response] = (await once(own, 'response')) as [IncomingMessage];
    await once(response.resume(), 'end');
    await create();
    expect(relay.connections).toBe(4);
  });

  it.concurrent(
    'is repeated on another connection for a token request without a response, while a slow response is awaited',
    async () => {
      const { auth, relay, simulator } = await through({ to: 'authUrl', hang: 1 }, { connectTimeout: 1_500 });
      simulator.fail({ face: 'token', fault: { delayMs: 2_000 } });
      await auth.getApiToken();
      expect(relay.connections).toBe(2);
      expect(simulator.tokenRequests).toHaveLength(1);
    },
  );
});

describe('A connection that the server has closed, while the event loop has not processed the FIN yet,', () => {
  let simulator: ServiceSimulator;
  let started: StartedModule;
  const create = () => started.customers.create({ app_user_id: randomUUID() });
  /** Starts the application and makes a call, which leaves an idle connection. */
  async function start(http: ServiceHttpOptions = {}): Promise<void> {
    simulator = await startSimulator();
    started = await startModule({ ...simulator.moduleOptions({ authentication: 'mtls' }), http });
    await create();
  }
  afterEach(async () => {
    await started.module.close();
    await simulator.stop();
    expect(new Set(simulator.apiRequests.map(({ connection }) => connection)).size).toBe(2);
  });

  it.each<[string, (callback: () => void) => unknown]>([
    ['a timer', (callback) => setTimeout(callback, 1)],
    ['a callback of I/O', (callback) => readFile(import.meta.filename, callback)],
  ])('is not reused for a POST that is sent from %s', async (_, after) => {
    await start();
    await new Promise((resolve, reject) => {
      after(() => {
        simulator.dropConnections();
        // The FIN arrives while the event loop is blocked, so the idle socket still looks open when the POST is sent.
        blockEventLoop(20);
        create().then(resolve, reject);
      });
    });
  });

  it('is not reused for a POST that waited for it', async () => {
    await start({ maxSockets: 1 });
    await Promise.all([create().then(() => simulator.dropConnections()), create()]);
    expect(simulator.apiRequests.map(({ status }) => status)).toEqual([201, 201, 201]);
  });
});

describe('A call that waits for a token', () => {
  let simulator: ServiceSimulator;
  let started: StartedModule;
  const handshakes = () => simulator.handshakes['oauth-base'].total;
  beforeEach(async () => {
    simulator = await startSimulator();
    started = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
  });
  afterEach(async () => {
    await started.module.close();
    await simulator.stop();
  });

  it('connects to the API once while the token is requested, and all calls use that connection', async () => {
    simulator.fail({ face: 'token', fault: { delayMs: 1_000 } });
    const calls = Promise.all([started.banks.list(), started.banks.list()]);
    await until(() => handshakes() === 1);
    expect(simulator.apiRequests).toEqual([]);
    await calls;
    await started.customers.create({ app_user_id: 'u-1' });
    // The second call ran at the same time as the first, so it has a connection of its own.
    expect(handshakes()).toBeLessThanOrEqual(2);
    expect(simulator.apiRequests.map(({ status }) => status)).toEqual([200, 200, 201]);
  });

  it('does not connect for a token that no call waits for', async () => {
    await started.auth.getApiToken();
    await started.auth.getCustomerToken('c-1');
    expect(handshakes()).toBe(0);
  });
});

const program = findProgram('nginx');
const nginxIt = itWith(program, 'TLS by nginx as a sidecar');

describe('docs/certificates.md: a sidecar has the key', () => {
  let simulator: ServiceSimulator;
  let nginx: Awaited<ReturnType<typeof startNginx>> | undefined;
  let folder: string;
  /** The directives for three kinds of nginx: one presents the certificate to the API, one presents none, one is in front of the token endpoint. */
  let sidecar: string;
  let withoutCertificate: string;
  let tokenSidecar: string;
  /** Presents no certificate to a service that then refuses the handshake with an alert. */
  let refused: string;
  let strict: ServiceSimulator;

  beforeAll(async () => {
    simulator = await startSimulator({
      requireClientCertificate: true,
      clientCertificateRefusal: 'http-400',
      certificateBoundTokens: true,
    });
    strict = await startSimulator({ requireClientCertificate: true });
    if (nginxIt !== it) return;
    const nginxPath = requireProgram(program);
    folder = await mkdtemp(join(tmpdir(), 'sidecar-'));
    const { certificate, privateKey } = simulator.application;
    const files = {
      'tls.crt': certificate,
      'tls.key': privateKey,
      'chain.pem': simulator.chain,
      'strict.pem': strict.chain,
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const { fences } = await readDocument('docs/certificates.md');
    const recipe = fences.find(({ language }) => language === 'nginx')?.text ?? '';
    expect(fences.some(({ text }) => /^SERVICE_BASE_URL=http:\/\/127\.0\.0\.1:8080$/m.test(text))).toBe(true);
    const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
    const { baseUrl, authUrl } = simulator.urls;
    const serversOf = (index: number, target: string): string =>
      recipe
        .replace('api.service.example:443', new URL(target).host)
        .replaceAll('api.service.example', 'localhost')
        .replaceAll(/\/run\/secrets\/[\w-]+\//g, `${folder}/`)
        .replace('127.0.0.1:8080', `127.0.0.1:${ports[index]}`)
        .replaceAll(/\bservice\b(?=[ ;]|$)/gm, `service-${index}`);
    const bare = (server: string): string => server.replaceAll(/proxy_ssl_certificate.*;/g, '');
    const refusing = bare(serversOf(3, strict.urls.baseUrl)).replace('chain.pem', 'strict.pem');
    const servers = [
      serversOf(0, baseUrl),
      bare(serversOf(1, baseUrl)),
      serversOf(2, authUrl),
      refusing,
    ].join('\n');
    nginx = await startNginx(nginxPath, servers);
    [sidecar, withoutCertificate, tokenSidecar, refused] = ports.map((port) => `http://127.0.0.1:${port}`);
  });
  afterAll(async () => {
    await nginx?.stop();
    if (folder) await rm(folder, { recursive: true });
    await Promise.all([simulator.stop(), strict.stop()]);
  });

  const options = (baseUrl: string, more: ServiceModuleOptions = {}): ServiceModuleOptions => ({
    environment: 'production',
    authentication: 'mtls',
    urls: { baseUrl, ...more.urls },
    appToken: simulator.appToken,
    oauth: more.oauth,
    http: { retries: 0 },
  });

  nginxIt('calls the service with the certificate of nginx and our app token', async () => {
    const warnings: string[] = [];
    const other = (): void => undefined;
    const logger = { log: other, error: other, warn: (line: string) => void warnings.push(line) };
    const { module, banks, customers } = await startModule(options(sidecar), logger);
    await banks.list();
    await customers.create({ app_user_id: 'u-1' });
    expect(simulator.apiRequests.splice(0)).toMatchObject(
      ['GET', 'POST'].map((method) => ({
        method,
        certificateSubject: simulator.application.subject,
        headers: { 'service-app-token': simulator.appToken },
      })),
    );
    expect(warnings).toEqual([]);
    await module.close();
  });

  it('needs no certificate from a tls function either', async () => {
    const tls = () => ({});
    const { module } = await startModule({ ...options('http://127.0.0.1:1'), tls });
    await module.close();
    const error = await rejection(startModule({ ...options('https://127.0.0.1:1'), tls }));
    expect(String(error)).toContain('the tls function returned none');
  });

  nginxIt('says where to look if the sidecar shows no certificate', async () => {
    const { module, banks } = await startModule(options(withoutCertificate));
    const error = (await rejection(banks.list())) as ServiceApiError;
    expect(error).toBeInstanceOf(ServiceApiError);
    expect(error.status).toBe(400);
    expect(error.hint).toContain(
      'check that the certificate of the sidecar at urls.baseUrl (SERVICE_BASE_URL) belongs',
    );
    await module.close();
  });

  nginxIt(
    'names its certificate if the service refuses it with an alert, which nginx answers with a 502',
    async () => {
      const { clientId, clientSecret } = simulator;
      const { module, banks, auth } = await startModule({
        ...options(refused, { urls: { authUrl: refused }, oauth: { clientId, clientSecret } }),
      });
      for (const [call, option] of [
        [() => banks.list(), 'urls.baseUrl'],
        [() => auth.getApiToken({ once: true }), 'urls.authUrl'],
      ] as const) {
        const error = (await rejection(call())) as ServiceError;
        expect(error).toMatchObject({ status: 502, retryable: true });
        expect(error.message).toMatch(/the sidecar on this machine got no response from the service/);
        expect(error.hint).toMatch(
          /^Look into the log of the sidecar .*refused the client certificate of the sidecar/,
        );
        expect(error.options).toEqual([option]);
      }
      await module.close();
    },
  );

  nginxIt('gets tokens that are bound to the certificate of the sidecar', async () => {
    const { clientId, clientSecret } = simulator;
    const { module, auth, banks } = await startModule({
      ...options(sidecar, {
        urls: { authUrl: tokenSidecar },
        oauth: { clientId, clientSecret, mtls: true },
      }),
      authentication: 'oauth',
    });
    await banks.list();
    const sdk = module.get(LinkSdkService);
    await sdk.connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
    expect(auth.certificate).toBeUndefined();
    const { subject } = simulator.application;
    expect(simulator.requests.slice(-3).map(({ certificateSubject }) => certificateSubject)).toEqual([
      subject,
      subject,
      subject,
    ]);
    await module.close();
  });

  nginxIt('is checked by the doctor as far as possible', async () => {
    const { clientId, clientSecret, appToken } = simulator;
    const io = commandIo({
      SERVICE_ENVIRONMENT: 'production',
      SERVICE_BASE_URL: sidecar,
      SERVICE_AUTH_URL: tokenSidecar,
      SERVICE_APP_TOKEN: appToken,
      SERVICE_CLIENT_ID: clientId,
      SERVICE_CLIENT_SECRET: clientSecret,
      SERVICE_OAUTH_MTLS: 'true',
    });
    expect(await run([], io, { stepMs: 10_000, totalMs: 20_000 })).toBe(0);
    const rows = Object.fromEntries(
      [...io.stdout().matchAll(/^(\w+) +(\S+) +(.+)$/gm)].map(([, status, name, message]) => [
        name,
        `${status}: ${message}`,
      ]),
    );
    expect(rows).toMatchObject({
      'token.api': expect.stringMatching(/^ok: /),
      'api.banks': expect.stringMatching(/^ok: GET \/banks\/v1 answered with JSON/),
    });
  });
});
