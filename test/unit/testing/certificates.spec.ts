import { beforeAll, describe, expect, it } from '@jest/globals';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { explainAbsence } from '../../../lib/testing/optional-peers.js';
import { type ServiceSimulator } from '../../../lib/testing/simulator.js';
import { simulatorsOfBlock } from '../../helpers/simulators.js';
import { call, failCode } from './plain-client.js';

describe('the certificates of ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  const start = simulatorsOfBlock();
  beforeAll(async () => {
    simulator = await start();
  });

  const blocks = (pem: string) => pem.match(/-----BEGIN[^]+?-----END [A-Z ]+-----/g) ?? [];

  it('form a chain: application, intermediate, root', () => {
    const application = new X509Certificate(simulator.application.certificate);
    const [intermediate, root] = blocks(simulator.chain).map((pem) => new X509Certificate(pem));
    expect(application.checkIssued(intermediate)).toBe(true);
    expect(application.verify(intermediate.publicKey)).toBe(true);
    expect(intermediate.verify(root.publicKey)).toBe(true);
    expect(root.verify(root.publicKey)).toBe(true);
    expect([application.ca, intermediate.ca, root.ca]).toEqual([false, true, true]);
    expect(application.checkPrivateKey(createPrivateKey(simulator.application.privateKey))).toBe(true);
    expect(simulator.application.subject).toBe(`CN=${simulator.clientId}, O=Simulated Application`);
  });

  it('serve a server certificate for 127.0.0.1 and localhost, with the intermediate, that verifies', async () => {
    const { port } = new URL(simulator.urls.sandboxUrl);
    const [intermediate = '', root] = blocks(simulator.chain);
    for (const ca of [simulator.chain, root]) {
      for (const servername of ['localhost', undefined]) {
        const socket = connect({ host: '127.0.0.1', port: Number(port), ca, servername });
        await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
        expect(socket.authorized).toBe(true);
        const issuer = socket.getPeerX509Certificate()?.issuerCertificate;
        expect(issuer?.fingerprint256).toBe(new X509Certificate(intermediate).fingerprint256);
        socket.destroy();
      }
    }
  });

  it('are not trusted without the chain', async () => {
    const code = await failCode(call(simulator, simulator.urls.sandboxUrl, { ca: undefined }));
    expect(code).toMatch(
      /^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/,
    );
  });

  it('are issued with the name, dates and passphrase asked for', async () => {
    const notBefore = new Date('2030-01-01T00:00:00Z');
    const notAfter = new Date('2031-01-01T00:00:00Z');
    const issued = await simulator.issueCertificate({
      commonName: 'billing, with comma',
      notBefore,
      notAfter,
      passphrase: 'pass',
    });
    const certificate = new X509Certificate(issued.certificate);
    expect(new Date(certificate.validFrom)).toEqual(notBefore);
    expect(new Date(certificate.validTo)).toEqual(notAfter);
    expect(certificate.subject).toContain('billing, with comma'.replace(',', '\\,'));
    expect(issued.fingerprint256).toBe(certificate.fingerprint256);
    expect(issued.chain).toBe(simulator.chain);
    expect(issued.privateKey).toContain('BEGIN ENCRYPTED PRIVATE KEY');
    expect(() => createPrivateKey(issued.privateKey)).toThrow();
    const key = createPrivateKey({ key: issued.privateKey, passphrase: 'pass' });
    expect(certificate.checkPrivateKey(key)).toBe(true);
  });

  it('are foreign on demand: same form, another root', async () => {
    const foreign = await simulator.issueCertificate({ foreign: true });
    const [, root] = blocks(simulator.chain).map((pem) => new X509Certificate(pem));
    const [foreignIntermediate, foreignRoot] = blocks(foreign.chain).map((pem) => new X509Certificate(pem));
    expect(new X509Certificate(foreign.certificate).verify(foreignIntermediate.publicKey)).toBe(true);
    expect(foreignRoot.fingerprint256).not.toBe(root.fingerprint256);
  });

  it('differ from simulator to simulator', async () => {
    const other = await start();
    expect(other.chain).not.toBe(simulator.chain);
    expect(await failCode(call(simulator, other.urls.sandboxUrl))).toMatch(/CERT|SIGNATURE/);
  });

  it('live as long as asked for', async () => {
    const short = await start({
      certificates: { applicationLifetime: 86_400, serverLifetime: -60 },
    });
    const days =
      (Date.parse(new X509Certificate(short.application.certificate).validTo) - Date.now()) / 86_400_000;
    expect(days).toBeCloseTo(1, 2);
    expect(await failCode(call(short, short.urls.sandboxUrl))).toBe('CERT_HAS_EXPIRED');
  });

  it.each([
    ['foreign', { foreign: true }, /SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO/],
    ['expired', { notAfter: new Date(Date.now() - 1000) }, /^CERT_HAS_EXPIRED$/],
    ['for another host', { names: ['elsewhere.example'] }, /^ERR_TLS_CERT_ALTNAME_INVALID$/],
  ])('can be replaced on the server by one that is %s, and put back', async (_, request, code) => {
    const url = `${simulator.urls.sandboxUrl}/echo/v1`;
    await simulator.useServerCertificate({ face: 'sandbox', ...request });
    expect(await failCode(call(simulator, url))).toMatch(code);
    expect((await call(simulator, `${simulator.urls.authUrl}/x`)).status).toBe(404);
    await simulator.useServerCertificate();
    expect((await call(simulator, url)).status).toBe(401);
  });

  it('need optional peers, whose absence is explained', () => {
    const absent = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    expect(explainAbsence(absent)).toMatchObject({
      message: expect.stringContaining('npm i -D @peculiar/x509') as unknown,
    });
    const other = new Error('another fault');
    expect(explainAbsence(other)).toBe(other);
  });
});
