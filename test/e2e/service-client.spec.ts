import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import {
  createServiceClient,
  ServiceCertificateError,
  ServiceConfigurationError,
  ServiceStartupError,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { modulesOfBlock, rejection } from '../helpers/start-module.js';
import { TimerCount } from '../helpers/timer-count.js';

describe('createServiceClient', () => {
  let simulator: ServiceSimulator;
  let other: ServiceSimulator;
  const logger = new CollectingLogger();
  const { setVariables } = modulesOfBlock();

  beforeAll(async () => {
    Logger.overrideLogger(logger);
    [simulator, other] = await Promise.all([ServiceSimulator.start(), ServiceSimulator.start()]);
  });
  afterEach(() => {
    for (const each of [simulator, other]) {
      each.clearFaults();
      each.clearRequests();
    }
  });
  afterAll(async () => {
    Logger.overrideLogger(false);
    await Promise.all([simulator.stop(), other.stop()]);
  });

  it('makes clients with tokens, connections and certificates of their own, without Nest', async () => {
    const [a, b] = await Promise.all(
      [simulator, other].map((of) =>
        createServiceClient(of.moduleOptions({ environment: 'production', oauth: true })),
      ),
    );
    for (const [client, of] of [
      [a, simulator],
      [b, other],
    ] as const) {
      expect(await client.banks.list()).toHaveLength(10);
      await client.customers.create({ app_user_id: randomUUID() });
      await client.http.get('/banks/v1');
      const parameters = await client.sdk.sessionParameters({ customer_id: 'c-1' });
      expect(Object.keys(parameters)).toEqual(['app_token', 'access_token', 'customer_id']);
      expect(client.auth.certificate?.fingerprint256).toBe(of.application.fingerprint256);
      expect(of.apiRequests.map(({ certificateFingerprint256 }) => certificateFingerprint256)).toEqual(
        Array(3).fill(of.application.fingerprint256),
      );
      expect(of.tokenRequests).toHaveLength(1);
    }
    expect(a.auth.httpsAgent).not.toBe(b.auth.httpsAgent);
    expect(Object.keys(a).sort()).toEqual(['auth', 'banks', 'close', 'customers', 'http', 'sdk']);
    expect(logger.linesOf('ServiceClient')[0]).toMatch(/^production, mtls: calls go to/);
    await Promise.all([a.close(), b.close()]);
  });

  it('reads no variable, and names none in its errors', async () => {
    setVariables({ SERVICE_APP_TOKEN: 'of-another' });
    const { appToken: _, ...options } = simulator.moduleOptions({ environment: 'sandbox' });
    const error = (await rejection(createServiceClient(options))) as ServiceConfigurationError;
    expect(error).toBeInstanceOf(ServiceConfigurationError);
    expect(error.message).toMatch(
      /^The options of createServiceClient\(\) are not usable:\n {2}- appToken: is missing/,
    );
    expect(error.message).not.toMatch(/SERVICE_|ConfigModule/);
    await expect(createServiceClient({})).rejects.toThrow(/urls\.sandboxUrl: is missing/);
    await expect(createServiceClient(undefined as never)).rejects.toThrow(/takes an object of options/);
  });

  it('checks options as the module does, certificates and the start-up check too', async () => {
    const options = simulator.moduleOptions({ environment: 'production' });
    const tls = { ...options.tls, privateKey: other.application.privateKey };
    expect(await rejection(createServiceClient({ ...options, tls }))).toBeInstanceOf(ServiceCertificateError);
    await expect(createServiceClient({ ...options, name: 'ksa' } as never)).rejects.toThrow(
      /name: is not an option/,
    );
    const timers = new TimerCount();
    try {
      const before = timers.running;
      const wrong: ServiceModuleOptions = { ...options, appToken: 'wrong', startupCheck: 'fail' };
      expect(await rejection(createServiceClient(wrong))).toBeInstanceOf(ServiceStartupError);
      expect(timers.running).toBe(before);
    } finally {
      timers.restore();
    }
    const right: ServiceModuleOptions = { ...options, startupCheck: 'fail' };
    simulator.clearRequests();
    const client = await createServiceClient(right);
    expect(simulator.apiRequests).toHaveLength(1);
    await client.close();
  });

  it('follows its files, and leaves nothing after close(), which gives running calls their time', async () => {
    const timers = new TimerCount();
    const folder = await mkdtemp(join(tmpdir(), 'service-client-'));
    try {
      const before = timers.running;
      const { tls, ...options } = simulator.moduleOptions({ environment: 'production' });
      const [certificate, privateKey] = ['certificate', 'key'].map((part) => ({ file: join(folder, part) }));
      await writeFile(certificate.file, tls.certificate ?? '');
      await writeFile(privateKey.file, tls.privateKey ?? '');
      const http = { shutdownTimeout: 200, retries: 0 };
      const client = await createServiceClient({
        ...options,
        http,
        tls: { ...tls, certificate, privateKey },
      });
      const renewed = await simulator.issueCertificate();
      await writeFile(certificate.file, renewed.certificate);
      await writeFile(privateKey.file, renewed.privateKey);
      expect(await client.auth.reloadCertificate()).toBe(true);
      await client.banks.list();
      expect(simulator.apiRequests[0].certificateFingerprint256).toBe(renewed.fingerprint256);
      simulator.fail({ path: '/slow', fault: { delayMs: 100 } });
      simulator.fail({ path: '/hangs', fault: 'hang' });
      const slow = rejection(client.http.get('/slow'));
      const hangs = rejection(client.http.get('/hangs'));
      for (const path of ['/slow', '/hangs'])
        await simulator.waitForRequest((request) => request.path === path);
      await client.close();
      expect(await slow).toMatchObject({ status: 404 });
      expect(await hangs).toMatchObject({ kind: 'closed' });
      expect(await rejection(client.banks.list())).toMatchObject({ kind: 'closed' });
      expect(timers.running).toBe(before);
    } finally {
      timers.restore();
      await rm(folder, { recursive: true });
    }
  });
});
