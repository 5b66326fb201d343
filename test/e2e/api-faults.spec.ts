import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { ServiceApiError, ServiceCertificateError, ServiceConnectionError } from 'nestjs-service';
import { type ServiceSimulator, type SimulatorFault } from 'nestjs-service/testing';
import { deadPort } from '../helpers/loopback.js';

import { warningsDuring } from '../helpers/node-process.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { rejection, startModule, type StartedModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

/** The faults of the API over real TLS. The server counts the requests. */
describe('faults of the API', () => {
  let simulator: ServiceSimulator;
  let oauth: StartedModule;
  let mtls: StartedModule;

  beforeAll(async () => {
    simulator = await startSimulator();
    const http = { timeout: 3_000 };
    oauth = await startModule({ ...simulator.moduleOptions({ authentication: 'oauth' }), http });
    mtls = await startModule({ ...simulator.moduleOptions({ authentication: 'mtls' }), http });
    await oauth.banks.list();
    simulator.clearRequests();
  });
  afterEach(async () => {
    simulator.clearFaults();
    simulator.clearRequests();
  });
  afterAll(async () => {
    await oauth.module.close();
    await mtls.module.close();
    await simulator.stop();
  });

  const create = ({ customers }: StartedModule) => customers.create({ app_user_id: randomUUID() });
  const arrived = () => simulator.apiRequests.length;
  const failBanks = (fault: SimulatorFault, times = 1) => simulator.fail({ path: '/banks/v1', times, fault });
  const failCustomers = (fault: SimulatorFault, times = 1) =>
    simulator.fail({ path: '/customers/v1', times, fault });

  it('401 once: one refresh shared by all, one replay each', async () => {
    simulator.revokeTokens();
    await Promise.all([oauth.banks.list(), oauth.banks.list(), oauth.banks.list(), create(oauth)]);
    expect(simulator.tokenRequests).toHaveLength(1);
    expect(simulator.apiRequests.filter(({ status }) => status === 401)).toHaveLength(4);
    expect(simulator.customers.length).toBeGreaterThan(0);
  });

  it('401 always: reported after one replay, refreshes bounded, the token stays cached', async () => {
    const api = await startModule(simulator.moduleOptions({ authentication: 'oauth' }));
    failBanks({ status: 401, json: { status: 'UNAUTHORIZED', message: 'no' } }, Infinity);
    for (let call = 0; call < 10; call++)
      expect(await rejection(api.banks.list())).toMatchObject({
        status: 401,
        body: { message: 'no' },
      });
    // The first token, then a burst of three forced refreshes.
    expect(simulator.tokenRequests).toHaveLength(4);
    simulator.clearFaults();
    await api.banks.list();
    expect(simulator.tokenRequests).toHaveLength(4);
    await api.module.close();
  });

  it('403 is no reason to refresh', async () => {
    failBanks({ status: 403, json: { status: 'FORBIDDEN', message: 'not yours' } });
    expect(await rejection(oauth.banks.list())).toMatchObject({
      status: 403,
      body: { message: 'not yours' },
    });
    expect([arrived(), simulator.tokenRequests.length]).toEqual([1, 0]);
  });

  it.each([429, 503])(
    '%d with Retry-After in seconds or as a date: honoured inside the deadline',
    async (status) => {
      failBanks({ status, headers: { 'retry-after': '1' } });
      const startedAt = performance.now();
      await mtls.banks.list();
      expect(performance.now() - startedAt).toBeGreaterThan(900);
      simulator.clearRequests();
      failBanks({ status, headers: { 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() } });
      const error = await rejection(mtls.banks.list());
      expect(error).toMatchObject({ status });
      expect((error as ServiceApiError).retryAfter).toBeGreaterThan(3_000);
      expect(arrived()).toBe(1);
    },
  );

  it.each<SimulatorFault>(['reset', 'reset-after-headers', 'truncate', { status: 408 }, { status: 502 }])(
    '%j: a GET is retried',
    async (fault) => {
      failBanks(fault, 2);
      expect(Array.isArray(await mtls.banks.list())).toBe(true);
      expect(arrived()).toBe(3);
    },
  );

  it.each<SimulatorFault>(['reset', 'reset-after-headers', 'truncate'])(
    '%j: a POST is not, and its outcome is unknown',
    async (fault) => {
      failCustomers(fault);
      const error = await rejection(create(mtls));
      expect(error).toBeInstanceOf(ServiceConnectionError);
      expect(error).toMatchObject({
        kind: 'reset',
        outcomeUnknown: true,
        method: 'POST',
        path: '/customers/v1',
      });
      expect(arrived()).toBe(1);
    },
  );

  it('a kept-alive connection that the server had closed: a GET does not notice, without retries and a line in the log', async () => {
    const logger = new CollectingLogger();
    const options = simulator.moduleOptions({ authentication: 'mtls' });
    const api = await startModule({ ...options, http: { retries: 0 } }, logger);
    const three = () => Promise.all([api.banks.list(), api.banks.list(), api.banks.list()]);
    await three();
    simulator.clearRequests();
    // Closed by the server, and used before the client has noticed.
    simulator.dropConnections();
    await three();
    expect(arrived()).toBe(3);
    expect(logger.lines.filter((line) => /another attempt/.test(String(line)))).toEqual([]);
    await api.module.close();
  });

  it('a fault before the handshake ended: any method is tried again', async () => {
    const api = await startModule(simulator.moduleOptions({ authentication: 'mtls' }));
    const broken = simulator.fail({ face: 'base', fault: 'reset-handshake' });
    await create(api);
    expect(arrived()).toBe(1);
    await api.module.close();
    expect(broken.hits).toBe(1);
  });

  it('refused: tried again, then typed; nothing was done', async () => {
    const options = simulator.moduleOptions({ authentication: 'mtls' });
    const baseUrl = `https://127.0.0.1:${await deadPort()}`;
    const api = await startModule({ ...options, urls: { ...options.urls, baseUrl } });
    expect(await rejection(create(api))).toMatchObject({ kind: 'refused', outcomeUnknown: false });
    await api.module.close();
  });

  it.each<[string, Parameters<ServiceSimulator['useServerCertificate']>[0], string, RegExp]>([
    ['a wrong host name', { names: ['other.example'] }, 'ERR_TLS_CERT_ALTNAME_INVALID', /another host name/],
    ['an unknown authority', { foreign: true }, 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', /tls\.chain/],
    [
      'an expired certificate',
      { notBefore: new Date(Date.now() - 2e8), notAfter: new Date(Date.now() - 1e8) },
      'CERT_HAS_EXPIRED',
      /expired/,
    ],
  ])(
    '%s of the server: fails closed, not retried, the cause named',
    async (_, certificate, reason, message) => {
      await simulator.useServerCertificate(certificate);
      const error = await rejection(mtls.banks.list());
      await simulator.useServerCertificate();
      expect(error).toMatchObject({ kind: 'tls', reason, outcomeUnknown: false });
      expect((error as Error).message).toMatch(message);
      expect(arrived()).toBe(0);
    },
  );

  it('our certificate refused by a TLS alert: a credential fault that names the fingerprint', async () => {
    const foreign = await simulator.issueCertificate({ foreign: true });
    const options = simulator.moduleOptions({ authentication: 'mtls', certificate: foreign });
    const api = await startModule(options);
    const error = await rejection(create(api));
    expect(error).toBeInstanceOf(ServiceCertificateError);
    expect(error).toMatchObject({
      code: 'certificate_refused',
      certificate: { fingerprint256: foreign.fingerprint256 },
    });
    expect((error as Error).message).toContain(foreign.fingerprint256);
    expect(simulator.handshakes.base.refused).toBe(1);
    await api.module.close();
  });

  it('a certificate demanded on TLS 1.2 and none set: not retried, named for what it is', async () => {
    await using demanding = await startSimulator({
      maxTlsVersion: 'TLSv1.2',
      requireClientCertificate: true,
    });
    const options = demanding.moduleOptions({ environment: 'production', authentication: 'oauth' });
    const urls = { ...options.urls, oauthBaseUrl: demanding.urls.baseUrl };
    const tls = { chain: demanding.chain };
    const api = await startModule({ ...options, urls, tls });
    const error = await rejection(create(api));
    expect(error).toMatchObject({ kind: 'tls', outcomeUnknown: false });
    expect((error as Error).message).toMatch(/may demand a client certificate/);
    await api.module.close();
  });

  it('HTML 400 of a proxy for a missing client certificate: the status, a hint, no HTML', async () => {
    const html = '<html><head><title>400 No required SSL certificate was sent</title></head></html>';
    failBanks({ status: 400, body: html, headers: { 'content-type': 'text/html' } });
    const error = await rejection(mtls.banks.list());
    expect(error).toBeInstanceOf(ServiceApiError);
    expect(error).toMatchObject({ status: 400, hint: expect.stringMatching(/tls\.certificate/) });
    expect(JSON.stringify(error)).not.toContain('<');
  });

  it.each([
    ['that does not say why', '<html><h1>403 Forbidden</h1></html>', /a page, not of the service itself/],
    [
      'that names the certificate',
      '<html>Client certificate required</html>',
      /misses or rejects the client/,
    ],
  ])('HTML 403 of a proxy %s: the status, a hint, no HTML, one attempt', async (_, body, hint) => {
    failBanks({ status: 403, body, headers: { 'content-type': 'text/html' } }, 2);
    const error = await rejection(mtls.banks.list());
    expect(error).toBeInstanceOf(ServiceApiError);
    expect(error).toMatchObject({ status: 403, hint: expect.stringMatching(/tls\.certificate/) });
    expect((error as ServiceApiError).message).toMatch(hint);
    expect(JSON.stringify(error)).not.toContain('<');
    expect(arrived()).toBe(1);
  });

  it('a redirect: never followed', async () => {
    failBanks({ status: 302, headers: { location: 'http://127.0.0.1:9/steal' } });
    expect(await rejection(mtls.banks.list())).toMatchObject({
      kind: 'redirect',
      location: 'http://127.0.0.1:9',
    });
    expect(arrived()).toBe(1);
  });

  it.each<SimulatorFault>(['html', 'empty'])('200 with %j: invalid_response', async (fault) => {
    failBanks(fault);
    expect(await rejection(mtls.banks.list())).toMatchObject({ code: 'invalid_response', status: 200 });
  });

  it('a body over the cap, a gzip bomb too: aborted', async () => {
    const options = {
      ...simulator.moduleOptions({ authentication: 'mtls' }),
      http: { maxResponseBytes: 10_000 },
    };
    const api = await startModule(options);
    failBanks({ gzipBombBytes: 50_000_000 });
    expect(await rejection(api.banks.list())).toMatchObject({ kind: 'too_large' });
    failBanks({ status: 200, json: 'x'.repeat(20_000) });
    expect(await rejection(api.banks.list())).toMatchObject({ kind: 'too_large' });
    await api.module.close();
  });

  it('a body that trickles, or none at all: ended by the deadline of the call', async () => {
    for (const fault of [{ trickleMs: 5 }, 'hang'] as SimulatorFault[]) {
      failBanks(fault, Infinity);
      const startedAt = performance.now();
      expect(await rejection(mtls.banks.list({ timeout: 200 }))).toMatchObject({ kind: 'timeout' });
      expect(performance.now() - startedAt).toBeLessThan(1_500);
      simulator.clearFaults();
    }
  });

  it("a caller's own abort: its reason, and nobody else's call ends", async () => {
    const controller = new AbortController();
    const reason = new Error('changed my mind');
    failBanks({ delayMs: 100 }, 2);
    const mine = rejection(mtls.banks.list({ signal: controller.signal }));
    const other = mtls.banks.list();
    await simulator.waitForRequest(({ path }) => path === '/banks/v1');
    controller.abort(reason);
    expect(await mine).toBe(reason);
    expect(await other).toBeDefined();
  });

  it('one signal for many calls: all end by it, and Node has no leak to warn of', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error('enough');
    oauth.auth.invalidate((await oauth.auth.getApiToken()).accessToken);
    simulator.fail({ fault: 'hang', times: Infinity });
    const warnings = await warningsDuring(async () => {
      const calls = Array.from({ length: 20 }, () => rejection(mtls.banks.list({ signal })));
      const tokens = Array.from({ length: 20 }, () => rejection(oauth.auth.getApiToken({ signal })));
      await simulator.waitForRequest(() => simulator.apiRequests.length === 20);
      controller.abort(reason);
      expect(new Set(await Promise.all([...calls, ...tokens]))).toEqual(new Set([reason]));
    });
    expect(warnings).toEqual([]);
  });
});
