import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LinkSdkService, ServiceApiError, type ServiceModuleOptions } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../lib/cli/doctor.js';
import { commandIo } from '../helpers/command-io.js';
import { freePort } from '../helpers/loopback.js';
import { startNginx } from '../helpers/nginx.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';
import { readDocument } from '../helpers/readme.js';
import { rejection, startModule } from '../helpers/start-module.js';
import { startSimulator } from '../helpers/simulators.js';

const program = findPeer('nginx');
const nginxIt = itWith(program, 'TLS by nginx as a sidecar');

describe('docs/certificates.md: a sidecar has the key', () => {
  let simulator: ServiceSimulator;
  let nginx: Awaited<ReturnType<typeof startNginx>> | undefined;
  let folder: string;
  /** What is set where nginx shows the certificate, shows none to the API, and is before the token endpoint. */
  let sidecar: string;
  let withoutCertificate: string;
  let tokenSidecar: string;

  beforeAll(async () => {
    simulator = await startSimulator({
      requireClientCertificate: true,
      clientCertificateRefusal: 'http-400',
      certificateBoundTokens: true,
    });
    if (nginxIt !== it) return;
    const nginxPath = requirePeer(program);
    folder = await mkdtemp(join(tmpdir(), 'sidecar-'));
    const { certificate, privateKey } = simulator.application;
    const files = { 'tls.crt': certificate, 'tls.key': privateKey, 'chain.pem': simulator.chain };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const { fences } = await readDocument('docs/certificates.md');
    const recipe = fences.find(({ language }) => language === 'nginx')?.text ?? '';
    expect(fences.some(({ text }) => /^SERVICE_BASE_URL=http:\/\/127\.0\.0\.1:8080$/m.test(text))).toBe(true);
    const ports = await Promise.all([freePort(), freePort(), freePort()]);
    const { baseUrl, authUrl } = simulator.urls;
    const serversOf = (index: number, target: string): string =>
      recipe
        .replace('api.service.example:443', new URL(target).host)
        .replaceAll('api.service.example', 'localhost')
        .replaceAll(/\/run\/secrets\/[\w-]+\//g, `${folder}/`)
        .replace('127.0.0.1:8080', `127.0.0.1:${ports[index]}`)
        .replaceAll(/\bservice\b(?=[ ;]|$)/gm, `service-${index}`);
    const bare = serversOf(1, baseUrl).replaceAll(/proxy_ssl_certificate.*;/g, '');
    const servers = [serversOf(0, baseUrl), bare, serversOf(2, authUrl)].join('\n');
    nginx = await startNginx(nginxPath, servers);
    [sidecar, withoutCertificate, tokenSidecar] = ports.map((port) => `http://127.0.0.1:${port}`);
  });
  afterAll(async () => {
    await nginx?.stop();
    if (folder) await rm(folder, { recursive: true });
    await simulator.stop();
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

  it('needs no certificate of a tls function either', async () => {
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
    expect(error.hint).toContain('check what the sidecar at urls.baseUrl (SERVICE_BASE_URL) shows');
    await module.close();
  });

  nginxIt('has it bind tokens too', async () => {
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

  nginxIt('the doctor checks what it can', async () => {
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
      [...io.printed().matchAll(/^(\w+) +(\S+) +(.+)$/gm)].map(([, status, name, message]) => [
        name,
        `${status}: ${message}`,
      ]),
    );
    expect(rows).toMatchObject({
      'token.api': expect.stringMatching(/^ok: /),
      'api.banks': expect.stringMatching(/^ok: GET \/banks\/v1 is answered/),
    });
  });
});
