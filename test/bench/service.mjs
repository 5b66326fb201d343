// nestjs-service as a host has it: a Nest application around the module that was built for this run.
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { built, startProcess } from './harness.mjs';

Logger.overrideLogger(['error', 'warn', 'fatal']);

export const APP_TOKEN = 'app-token-of-the-bench';

/** Resolves to the module's services and `close()`. `lib` is the URL of another build, as that of another commit. */
export async function startModule(options, lib) {
  const { BanksService, ServiceAuthService, ServiceHttpService, ServiceModule } = await built(
    'index.js',
    lib,
  );
  const module = { module: class BenchModule {}, imports: [ServiceModule.forRoot(options)] };
  const context = await NestFactory.createApplicationContext(module, { logger: ['error', 'warn', 'fatal'] });
  return {
    auth: context.get(ServiceAuthService),
    banks: context.get(BanksService),
    http: context.get(ServiceHttpService),
    close: () => context.close(),
  };
}

/** The API over mTLS in a process of its own, which answers after `delayMs`, and the client's PEMs for it. */
export async function startApi(delayMs = 0) {
  const { CertificateAuthority } = await built('testing/certificate-authority.js');
  const authority = await CertificateAuthority.create('Bench');
  const [server, client] = await Promise.all([
    authority.issue({ server: ['localhost', '127.0.0.1'] }, { commonName: 'localhost' }),
    authority.issue({ client: true }, { commonName: 'bench' }),
  ]);
  const { chain: ca } = authority;
  const api = await startProcess('api', { key: server.privateKey, cert: server.certificate, ca, delayMs });
  const pems = { cert: client.certificate, key: client.privateKey, ca };
  return { ...api, origin: `https://localhost:${api.port}`, pems };
}

/** What `ServiceModule.forRoot()` takes for calls of that API, in production with mTLS. */
export function mtlsOptions({ origin, pems: { cert, key, ca } }, more = {}) {
  return {
    environment: 'production',
    authentication: 'mtls',
    urls: { baseUrl: origin },
    appToken: APP_TOKEN,
    tls: { certificate: cert, privateKey: key, chain: ca },
    // Else the start warns that it may reach browsers.
    linkSdk: { includeAppToken: true },
    ...more,
  };
}

/** The same with a bearer token, over the same connections. */
export function oauthOptions(api) {
  return mtlsOptions(api, {
    authentication: 'oauth',
    urls: { baseUrl: api.origin, authUrl: api.origin },
    oauth: { clientId: '7d1f6a4e-3c52-4e0b-9a55-0f8f6e1c2b3a', clientSecret: 'secret', mtls: true },
  });
}
