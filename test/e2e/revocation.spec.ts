import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceApiError, ServiceCertificateError } from 'nestjs-service';
import { createAuthority, type Authority, type Issued, revocationList } from '../helpers/certificates.js';
import { freePort } from '../helpers/loopback.js';
import { startNginx } from '../helpers/nginx.js';
import { opensslServer } from '../helpers/openssl-server.js';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { rejection, startModule } from '../helpers/start-module.js';

const openssl = findProgram('openssl');
const nginx = findProgram('nginx');

describe('A server that checks whether client certificates are revoked', () => {
  let folder: string;
  let authority: Authority;
  let client: Issued;
  const fileOf = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const files = async () => ({
    cert: await fileOf('server.pem', authority.serverChain),
    key: await fileOf('server.key', authority.server.key),
    ca: await fileOf('ca.pem', authority.chain),
  });

  beforeAll(async () => {
    [folder, authority] = await Promise.all([mkdtemp(join(tmpdir(), 'revocation-')), createAuthority()]);
    client = await authority.client('app');
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function refusal(baseUrl: string): Promise<unknown> {
    const { module, banks } = await startModule({
      environment: 'production',
      authentication: 'mtls',
      appToken: 'app-token-1',
      urls: { baseUrl },
      tls: { certificate: client.certificate, privateKey: client.key, chain: authority.chain },
      http: { retries: 0 },
    });
    return rejection(banks.list()).finally(() => module.close());
  }

  itWith(openssl, 'alert 45 of a server whose CRL is out of date')(
    'sends alert 45 if its CRL is out of date: the error says so of a certificate that is valid, and leads to the operator',
    async () => {
      const { cert, key, ca } = await files();
      const list = await fileOf(
        'crl.pem',
        await revocationList(authority.intermediate, { isOutOfDate: true }),
      );
      const server = await opensslServer(requireProgram(openssl), [
        ...['-cert', cert, '-cert_chain', cert, '-key', key, '-CAfile', ca, '-Verify', '3'],
        ...['-verify_return_error', '-CRL', list, '-crl_check'],
      ]);
      const error = await refusal(server.url).finally(() => server.stop());
      expect(error).toBeInstanceOf(ServiceCertificateError);
      expect(error).toMatchObject({
        code: 'certificate_refused',
        message: expect.stringMatching(
          /^The server refused the client certificate: "CN=app".*_CERTIFICATE_EXPIRED\)\.$/,
        ),
        hint: expect.stringMatching(
          /^If this machine's clock is right, the certificate is still valid.*revoked certificates \(CRL\).*operator\. The guide has all steps/,
        ),
      });
    },
  );

  itWith(nginx, "nginx's page about a certificate that is revoked, or whose CRL is out of date").each([
    ['is revoked', true],
    ["is valid, while nginx's CRL is out of date", false],
  ])(
    'may be an nginx, whose page is the same if the certificate %s: the error names both',
    async (_, isRevoked) => {
      const { cert, key, ca } = await files();
      const { root, intermediate } = authority;
      const about = isRevoked ? { revoked: [client] } : { isOutOfDate: true };
      const lists = [await revocationList(intermediate, about), await revocationList(root)];
      const list = await fileOf('crl.pem', lists.join(''));
      const port = await freePort();
      const server = await startNginx(
        requireProgram(nginx),
        `server {
        listen 127.0.0.1:${port} ssl;
        ssl_certificate ${cert};
        ssl_certificate_key ${key};
        ssl_client_certificate ${ca};
        ssl_verify_client on;
        ssl_verify_depth 3;
        ssl_crl ${list};
      }`,
      );
      const error = await refusal(`https://localhost:${port}`).finally(() => server.stop());
      expect(error).toBeInstanceOf(ServiceApiError);
      expect(error).toMatchObject({
        status: 400,
        credentialFault: true,
        message: expect.stringMatching(/an nginx, rejects the client certificate\.$/),
        hint: expect.stringMatching(
          /^The certificate arrived: .*"CN=app".* It may also be revoked.*lack the certificate of "CN=Service Intermediate".*operator: nginx refuses every certificate like this/,
        ),
      });
    },
  );
});
