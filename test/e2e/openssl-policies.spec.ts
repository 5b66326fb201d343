import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import { type AddressInfo } from 'node:net';
import { createAuthority, issue, type Authority, type Issued } from '../helpers/certificates.js';
import { tellOfSource } from '../helpers/source-process.js';

/** Makes a client, sends a POST, and tells what was thrown at the start or by the call. */
const PROGRAM = `
const { createServiceClient } = await import(lib + '/index.ts');
const { URL_OF_API: url, CERTIFICATE: certificate, KEY: privateKey, CHAIN: chain } = process.env;
let attempts;
const http = { retries: 2, onCall: (event) => (attempts = event.attempts) };
const tls = { certificate, privateKey, chain };
const authentication = certificate ? 'mtls' : 'app-token';
const options = { authentication, appToken: 'a', urls: { sandboxUrl: url, sandboxMtlsUrl: url }, tls, http };
const client = await createServiceClient(options).catch((error) => tell({ start: error.faults }));
const tellError = (error) => tell({ ...error.toJSON(), message: error.message, attempts });
if (client) await client.http.post('/payments/v1', {}).catch(tellError).finally(() => client.close());
`;

const rsaKey = () =>
  generateKeyPairSync('rsa', { modulusLength: 2_048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();

describe('The policies of OpenSSL in this process', () => {
  let authority: Authority;
  let weak: Issued;
  let client: Issued;
  let ours: Issued;
  const servers: Server[] = [];

  beforeAll(async () => {
    const publicExponent = new Uint8Array([1, 0, 1]);
    const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 1024, publicExponent };
    [authority, weak] = await Promise.all([createAuthority(), issue('Weak', { ca: true, algorithm })]);
    [client, ours] = await Promise.all([issue('app', { issuer: weak }), authority.client('app')]);
  });
  afterAll(() => Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve)))));

  /** Starts a server that asks for a client certificate and accepts any. */
  async function serve(maxVersion: 'TLSv1.2' | 'TLSv1.3', minVersion: 'TLSv1.2' | 'TLSv1.3' = 'TLSv1.2') {
    const { serverChain: cert, server } = authority;
    const asks = { requestCert: true, rejectUnauthorized: false };
    const listening = createServer(
      { cert, key: server.key, ...asks, maxVersion, minVersion },
      (_, response) => {
        response.end('{}');
      },
    );
    servers.push(listening);
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    return `https://localhost:${(listening.address() as AddressInfo).port}`;
  }

  interface Told {
    start?: { option: string; message: string }[];
  }
  const run = (flag: string[], env: Record<string, string>) => tellOfSource<Told>(flag, PROGRAM, env);
  const nowhere = { URL_OF_API: 'https://localhost:9' };
  const withOurs = () => ({
    ...nowhere,
    CERTIFICATE: ours.certificate,
    KEY: ours.key,
    CHAIN: authority.chain,
  });

  it.each([
    ['a client certificate', true],
    ['no client certificate', false],
  ])('an unknown cipher list is told as that, with %s', async (_, hasCertificate) => {
    const { start } = await run(['--tls-cipher-list=NO-SUCH-CIPHER'], hasCertificate ? withOurs() : nowhere);
    expect(start).toEqual([
      {
        option: 'tls',
        message: expect.stringMatching(
          /knows none of the ciphers .*\(ERR_SSL_NO_CIPHER_MATCH\)\. Check --tls-cipher-list/,
        ),
      },
    ]);
  });

  it('an authority in tls.certificate that is too weak is told at the start, with what sets the level', async () => {
    const { start } = await run(['--tls-cipher-list=DEFAULT:@SECLEVEL=2'], {
      ...withOurs(),
      CERTIFICATE: client.certificate + weak.certificate,
      KEY: client.key,
    });
    expect(start).toMatchObject([
      {
        option: 'tls.certificate',
        message: expect.stringMatching(
          /\(ERR_SSL_CA_KEY_TOO_SMALL\)\. The key or signature of an authority .*@SECLEVEL in --tls-cipher-list.*OPENSSL_CONF/,
        ),
      },
    ]);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'an authority that is too weak to send our certificate over %s: one attempt, nothing in doubt, and the cause',
    async (version) => {
      const told = await run(['--tls-cipher-list=DEFAULT:@SECLEVEL=2'], {
        URL_OF_API: await serve(version),
        CERTIFICATE: client.certificate,
        KEY: client.key,
        CHAIN: authority.chain + weak.certificate,
      });
      expect(told).toMatchObject({
        code: 'connection_tls',
        reason: 'ERR_SSL_CA_KEY_TOO_SMALL',
        message: expect.stringMatching(
          /this process refuses to send its client certificate, .*Nothing was sent\.$/,
        ),
        hint: expect.stringMatching(
          /^Ask who issues tls\.certificate .*@SECLEVEL in --tls-cipher-list.*OPENSSL_CONF/,
        ),
        retryable: false,
        outcomeUnknown: false,
        attempts: 1,
      });
    },
  );

  it.each([
    ['--tls-min-v1.3', 'TLSv1.2', 'TLSv1.2'],
    ['--tls-max-v1.2', 'TLSv1.3', 'TLSv1.3'],
  ] as const)('%s, and a server without that version: the flag is named', async (flag, most, least) => {
    const env = { URL_OF_API: await serve(most, least), CHAIN: authority.chain };
    expect(await run([flag], env)).toMatchObject({
      code: 'connection_tls',
      message: expect.stringMatching(/the server and this process have no version of TLS in common/),
      hint: expect.stringMatching(/^Look for --tls-min-v1\.3 and --tls-max-v1\.2 /),
      outcomeUnknown: false,
      attempts: 1,
    });
  });

  it('a secure heap that is too small is named, although OpenSSL has the errors of damaged material', async () => {
    // Before Node 26, the loader of the sources needs a larger heap, which is too small for an RSA key alone.
    const isNewer = Number.parseInt(process.versions.node, 10) >= 26;
    const flag = [`--secure-heap=${isNewer ? 64 : 1_024}`, '--secure-heap-min=2'];
    const { start = [] } = await run(flag, { ...withOurs(), KEY: isNewer ? ours.key : rsaKey() });
    expect(start.map(({ option }) => option)).toContain('tls.privateKey');
    for (const { message } of start)
      expect(message).toMatch(/the secure heap .*give --secure-heap a larger value/);
  });
});
