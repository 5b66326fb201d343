import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { transformFileSync } from '@swc/core';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as tls from 'node:tls';
import { promisify } from 'node:util';
import { createAuthority, type Authority } from '../../helpers/certificates.js';
import { mtlsServer, type MtlsServer } from '../../helpers/mtls-server.js';

/** Makes the secure contexts twice, as a rotation does. Connects to each port with the context of the token endpoint and with that of the API. */
const PROGRAM = `
import { rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import tls, { connect } from 'node:tls';
import { createContextMaker } from './secure-contexts.mjs';
const { CHAIN, PORTS, ROOTS, OPAQUE } = process.env;
if (OPAQUE) {
  // A Node whose contexts show no calls of their own.
  const { createSecureContext } = tls;
  tls.createSecureContext = (options) =>
    options.minVersion && !options.ca ? { context: {} } : createSecureContext(options);
  syncBuiltinESMExports();
}
const outcome = (secureContext, port) => new Promise((resolve) => {
  const socket = connect({ port, host: '127.0.0.1', secureContext }, () => resolve('verified') ?? socket.destroy());
  socket.on('error', () => resolve('refused'));
});
const seen = { token: [], api: [], others: [] };
const contextsFor = createContextMaker(false);
for (let round = 0; round < 2; round += 1) {
  const { apiContext, tokenContext } = contextsFor({}, [CHAIN]);
  for (const port of JSON.parse(PORTS)) {
    seen.token.push(await outcome(tokenContext(), port));
    seen.api.push(await outcome(apiContext, port));
  }
  // Node reads this file when it starts. OpenSSL reads its own files whenever it needs them.
  if (process.env.NODE_EXTRA_CA_CERTS) rmSync(ROOTS, { force: true });
}
for (const port of JSON.parse(PORTS)) seen.others.push(await outcome(undefined, port));
console.log(JSON.stringify(seen));
`;

/** Node reads its roots when a process starts, so each test runs a process of its own. */
describe('Trust anchors of the API and the token endpoint', () => {
  let folder: string;
  let roots: string;
  let servers: MtlsServer[];
  let added: Authority;
  let own: Authority;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'public-roots-'));
    roots = join(folder, 'roots.pem');
    const source = transformFileSync('lib/tls/material/secure-contexts.ts', {
      jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
    });
    writeFileSync(join(folder, 'secure-contexts.mjs'), source.code);
    writeFileSync(join(folder, 'program.mjs'), PROGRAM);
    let stranger: Authority;
    [added, own, stranger] = await Promise.all(
      ['Added', 'Own', 'Stranger'].map((name) => createAuthority(name)),
    );
    servers = await Promise.all(
      [added, own, stranger].map((authority) => mtlsServer(authority, { demandCertificate: false })),
    );
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.close()));
    rmSync(folder, { recursive: true });
  });

  async function run(flags: string[], env: Record<string, string>): Promise<unknown> {
    writeFileSync(roots, added.root.certificate);
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, join(folder, 'program.mjs')], {
      env: {
        // An intermediate certificate alone is accepted as a trust anchor, too.
        CHAIN: own.intermediate.certificate,
        PORTS: JSON.stringify(servers.map(({ port }) => port)),
        ROOTS: roots,
        ...env,
      },
    });
    return JSON.parse(stdout) as unknown;
  }
  const onlyOwn = ['refused', 'verified', 'refused'];
  const both = ['verified', 'verified', 'refused'];
  const twice = (token: string[], others = ['verified', 'refused', 'refused']) => ({
    token: [...token, ...token],
    api: [...onlyOwn, ...onlyOwn],
    // The roots added to our contexts must not appear in any other context of the process.
    others,
  });

  it('the API and the token endpoint are both verified against tls.chain only, if no other roots are configured', async () => {
    expect(await run([], {})).toEqual(twice(onlyOwn, ['refused', 'refused', 'refused']));
  });

  it('NODE_EXTRA_CA_CERTS verifies the token endpoint but not the API, also after a rotation', async () => {
    expect(await run([], { NODE_EXTRA_CA_CERTS: roots })).toEqual(twice(both));
  });

  // --use-system-ca exists since Node 22.15: an older Node skips its case.
  for (const flag of ['--use-openssl-ca', '--use-system-ca']) {
    const itWithFlag = process.allowedNodeEnvironmentFlags.has(flag) ? it : it.skip;
    itWithFlag(
      `SSL_CERT_FILE with ${flag} verifies the token endpoint but not the API, also after a rotation`,
      async () => {
        expect(await run([flag], { SSL_CERT_FILE: roots })).toEqual(twice(both));
      },
    );
  }

  it('the token endpoint is verified against the roots that Node can list, if none can be added to a secure context', async () => {
    const lists = 'getCACertificates' in tls;
    const seen = await run([], { OPAQUE: '1', NODE_EXTRA_CA_CERTS: roots });
    expect(seen).toEqual(twice(lists ? both : onlyOwn));
  });
});
