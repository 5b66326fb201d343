import { afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { inspect } from 'node:util';
import { createPrivateKey } from 'node:crypto';
import { type TlsIdentityPems } from '../../../lib/config/tls.options.js';
import { type TlsSettings } from '../../../lib/config/resolved-options.js';
import { certificateRefusedError } from '../../../lib/tls/certificate-error.js';
import { ClientIdentity, type ClientIdentitySettings } from '../../../lib/tls/client-identity.js';
import { type CertificateSummary } from '../../../lib/errors/index.js';
import { SILENT } from '../../../lib/exchange/io.js';
import { byRename, bySymlinkSwap, inPlace, type Replacement } from '../../helpers/certificate-files.js';
import { createAuthority, issue, type Authority, type Issued } from '../../helpers/certificates.js';
import { FakeClock } from '../../helpers/fake-clock.js';
import { call, mtlsServer, until, type MtlsServer, type MtlsServerOptions } from './mtls-server.js';
import { locate, tlsSettings } from './tls-settings.js';

const DAY_MS = 86_400_000;
let authority: Authority;
let clients: Issued[];
let clock: FakeClock;
let folder: string;
let lines: string[];
const open: (() => Promise<void>)[] = [];

beforeAll(async () => {
  authority = await createAuthority();
  clients = await Promise.all(Array.from({ length: 3 }, (_, index) => authority.client(`app-${index}`)));
});
beforeEach(async () => {
  clock = new FakeClock({ start: Date.now(), withFiles: true });
  lines = [];
  folder = await mkdtemp(join(tmpdir(), 'identity-'));
});
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
  await rm(folder, { recursive: true });
});

async function start(
  tls: TlsSettings,
  settings: Partial<ClientIdentitySettings> = {},
): Promise<ClientIdentity> {
  const note = (level: string) => (message: string) => void lines.push(`${level}: ${message}`);
  const log = { debug: note('debug'), log: note('log'), warn: note('warn'), error: note('error') };
  const { identity, faults } = await ClientIdentity.open({
    tls,
    maxSockets: 20,
    offerToTokenEndpoint: false,
    clock,
    log,
    ...settings,
  });
  expect(faults).toEqual([]);
  const opened = identity as ClientIdentity;
  open.push(() => opened.close());
  opened.follow();
  return opened;
}

/** Started with a function that, from then on, answers when the test says so. */
async function startHeld() {
  clock = new FakeClock({ start: Date.now() });
  const answers: ((pems: TlsIdentityPems) => void)[] = [];
  let isHeld = false;
  const source = () =>
    isHeld ? new Promise<TlsIdentityPems>((resolve) => answers.push(resolve)) : pemsOf(clients[0]);
  const identity = await start({ source, reload: true, locate });
  isHeld = true;
  return { identity, answers };
}

async function server(options?: MtlsServerOptions): Promise<MtlsServer> {
  const live = await mtlsServer(authority, options);
  open.push(() => live.close());
  return live;
}

const pemsOf = ({ certificate, key }: Issued) => ({ certificate, privateKey: key, chain: authority.chain });
const paths = () => ({
  certificate: { file: join(folder, 'tls.crt') },
  privateKey: { file: join(folder, 'tls.key') },
});

const by =
  (replace: Replacement) =>
  ({ certificate, key }: Issued) =>
    replace(folder, { certificate, privateKey: key });

it('follows nothing once it is closed', async () => {
  const [{ certificate, key: privateKey }] = clients;
  const { identity } = await ClientIdentity.open({
    tls: tlsSettings({ certificate, privateKey }),
    maxSockets: 1,
    offerToTokenEndpoint: false,
    clock,
    log: SILENT,
  });
  await identity?.close();
  identity?.follow();
  expect(clock.timers).toBe(0);
});

describe('Files replaced while calls run', () => {
  it.each([
    ['written in place', by(inPlace)],
    ['renamed over', by(byRename)],
    ['symlink swapped', by(bySymlinkSwap)],
  ])(
    '%s: no call fails, every new subject arrives',
    async (_name, replace) => {
      const live = await server();
      await replace(clients[0]);
      const identity = await start(tlsSettings({ ...paths(), chain: authority.chain }));
      let running = true;
      let done = 0;
      const load = Array.from({ length: 20 }, async () => {
        while (running) {
          expect((await call(live.url, identity.httpsAgent)).status).toBe(200);
          done++;
          // A pace that leaves the loop time for the files, on a busy machine too.
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      });
      const changes: unknown[] = [];
      identity.onCertificateChange(() => changes.push(identity.certificate?.subject));
      for (const client of clients.slice(1, 3)) {
        const before = done;
        await until(() => done > before + 20);
        await replace(client);
        await clock.advance(5_000);
        expect(identity.certificate?.subject).toBe(`CN=${client.x509.subject.slice(3)}`);
        await until(() => live.subjects.includes(client.x509.subject.slice(3)));
      }
      running = false;
      await Promise.all(load);
      expect(new Set(live.subjects).size).toBe(3);
      expect(changes).toEqual(clients.slice(1, 3).map((client) => client.x509.subject));
      const last = live.subjects.slice(-1);
      expect(last).toEqual(['app-2']);
    },
    20_000,
  );

  it('half-written and mismatched for a while: the last good one stays; taken when it fits; no noise', async () => {
    const live = await server();
    await by(inPlace)(clients[0]);
    const identity = await start(tlsSettings({ ...paths(), chain: authority.chain }));
    await writeFile(paths().certificate.file, clients[1].certificate.slice(0, 100));
    await clock.advance(1_500);
    await by(inPlace)(clients[1]);
    await clock.advance(5_000);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([]);

    await writeFile(paths().certificate.file, clients[2].certificate);
    await clock.advance(130_000);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    expect(identity.status).toMatchObject({
      healthy: true,
      lastReloadFault: {
        faults: [{ option: 'tls.privateKey', message: expect.stringMatching(/another certificate/) }],
      },
    });
    expect(lines.filter((line) => line.startsWith('error'))).toHaveLength(1);
    await call(live.url, identity.httpsAgent);

    await writeFile(paths().privateKey.file, clients[2].key);
    await clock.advance(10_000);
    expect(identity.status.lastReloadFault).toBeUndefined();
    await call(live.url, identity.httpsAgent);
    expect(live.subjects).toEqual(['app-1', 'app-2']);
  });

  it('all that is wrong with a new identity is logged, each on a line of its own', async () => {
    await by(inPlace)(clients[0]);
    await start(tlsSettings(paths()));
    await writeFile(paths().certificate.file, 'nonsense');
    await writeFile(paths().privateKey.file, 'nonsense');
    await clock.advance(10_000);
    expect(lines).toEqual([
      expect.stringMatching(
        /^error: The new client identity is not usable; the one before stays in use:\n {2}- tls\.certificate: [^\n]+\.\n {2}- tls\.privateKey: [^\n]+\.$/,
      ),
    ]);
  });

  it('a bad pair taken back leaves no fault', async () => {
    await by(inPlace)(clients[0]);
    const identity = await start(tlsSettings(paths()));
    await writeFile(paths().certificate.file, 'nonsense');
    await clock.advance(10_000);
    expect(identity.status.lastReloadFault?.faults).toHaveLength(1);
    await by(inPlace)(clients[0]);
    await clock.advance(10_000);
    expect(identity.status.lastReloadFault).toBeUndefined();
  });

  it('a certificate not valid yet is taken when its time comes', async () => {
    const early = await authority.client('early', { notBefore: new Date(clock.now() + 120_000) });
    await by(inPlace)(clients[0]);
    const identity = await start(tlsSettings(paths()));
    await by(inPlace)(early);
    await clock.advance(10_000);
    expect(identity.status.lastReloadFault?.faults[0].message).toMatch(/not valid before/);
    await clock.advance(50_000);
    expect(identity.certificate?.subject).toBe('CN=app-0');
    await clock.advance(120_000);
    expect(identity.certificate?.subject).toBe('CN=early');
    expect(lines.filter((line) => line.startsWith('error'))).toHaveLength(1);
    expect(identity.status.lastReloadFault).toBeUndefined();
  });

  it('reload: false follows nothing, but reload() still reads', async () => {
    await by(inPlace)(clients[0]);
    const identity = await start(tlsSettings(paths(), false));
    await by(inPlace)(clients[1]);
    await clock.advance(60_000);
    expect(identity.certificate?.subject).toBe('CN=app-0');
    expect(await identity.reloadAfterRefusal(identity.certificate)).toBe(false);
    expect(await identity.reload()).toBe(true);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    const told = lines.length;
    expect(await identity.reload()).toBe(false);
    expect(lines).toHaveLength(told);
  });
});

describe('Without a chain, a client certificate', () => {
  const [certificate, chain] = [() => pemsOf(clients[0]), () => pemsOf(clients[0]).chain];
  const withoutChain = () => ({ ...certificate(), chain: undefined });
  const opened = async (tls: TlsSettings) => {
    const { identity, faults } = await ClientIdentity.open({
      tls,
      maxSockets: 1,
      offerToTokenEndpoint: false,
      clock,
      log: { debug: () => undefined, log: () => undefined, warn: () => undefined, error: () => undefined },
    });
    open.push(async () => identity?.close());
    return { identity, faults };
  };

  it.each([
    ['needs one in production', {}, 'required', ['tls.chain']],
    ['needs none there with publicRoots', { publicRoots: true }, 'required', []],
    ['may lack it in the sandbox', {}, 'advised', []],
    ['needs none where no call over https has it', {}, undefined, []],
  ] as const)('%s', async (_, given, needsChain, expected) => {
    const text = await opened({ ...tlsSettings(withoutChain()), ...given, needsChain });
    expect(text.faults.map(({ option }) => option)).toEqual(expected);
    for (const { variable, message } of text.faults) {
      expect(variable).toBe('SERVICE_TLS_CHAIN');
      expect(message).toMatch(
        /5\.2\.4.*set tls\.publicRoots \(SERVICE_TLS_PUBLIC_ROOTS\) to true instead\.$/,
      );
    }
    if (text.identity) expect(text.identity.lacksChain).toBe(needsChain === 'advised');
    const source = () => ({ ...withoutChain(), ...given });
    const returned = await opened({ source, reload: true, locate, needsChain });
    expect(returned.faults.map(({ option }) => option)).toEqual(expected);
    for (const { message } of returned.faults)
      expect(message).toMatch(/set tls\.publicRoots to true instead/);
  });

  it('is needed in no mode where there is no certificate', async () => {
    expect((await opened({ ...tlsSettings({}), needsChain: 'required' })).faults).toEqual([]);
  });

  it('has one anchor: the chain, whatever publicRoots says', async () => {
    const { identity } = await opened({ ...tlsSettings({ chain: chain() }), publicRoots: true });
    expect(identity?.hasChain).toBe(true);
  });

  it('keeps the last good identity where the newest answer has neither; takes one with public roots', async () => {
    let answer: TlsIdentityPems = { ...withoutChain(), publicRoots: true };
    const { identity } = await opened({ source: () => answer, reload: true, locate, needsChain: 'required' });
    answer = withoutChain();
    expect(await identity?.reload()).toBe(false);
    expect(identity?.status.lastReloadFault?.faults).toMatchObject([{ option: 'tls.chain' }]);
    answer = certificate();
    expect(await identity?.reload()).toBe(true);
    expect(identity?.hasChain).toBe(true);
    answer = withoutChain();
    expect(await identity?.reload()).toBe(false);
    answer = { ...withoutChain(), publicRoots: true };
    expect(await identity?.reload()).toBe(true);
    expect(identity?.hasChain).toBe(false);
  });
});

describe('A function as the source', () => {
  it('is asked each minute, and when told to; its failure keeps the last good one', async () => {
    let answer: () => TlsIdentityPems = () => pemsOf(clients[0]);
    let asked = 0;
    const source = async () => {
      asked++;
      return answer();
    };
    const identity = await start({ source, reload: true, locate });
    await clock.advance(61_000);
    expect(asked).toBe(2);
    answer = () => pemsOf(clients[1]);
    await clock.advance(60_000);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    answer = () => {
      throw new Error('hvs.secret-token is not allowed');
    };
    expect(await identity.reload()).toBe(false);
    expect(identity.status.lastReloadFault?.faults[0]).toMatchObject({ option: 'tls' });
    expect(lines.join()).not.toMatch('hvs');
    answer = () => pemsOf(clients[2]);
    expect(await Promise.all([identity.reload(), identity.reload()])).toEqual([true, true]);
    expect(identity.certificate?.subject).toBe('CN=app-2');
  });

  it('that leaves out certificate or chain does not change what servers are trusted, nor who we are', async () => {
    const live = await server();
    let answer: TlsIdentityPems = pemsOf(clients[0]);
    const identity = await start({ source: () => answer, reload: true, locate });
    const { certificate, privateKey, chain } = pemsOf(clients[1]);
    for (const [partial, lost] of [
      [{ certificate, privateKey }, ['tls.chain']],
      [{ chain }, ['tls.certificate']],
      [{}, ['tls.certificate', 'tls.chain']],
    ] as const) {
      answer = partial;
      expect(await identity.reload()).toBe(false);
      const faults = identity.status.lastReloadFault?.faults;
      expect(faults?.map(({ option }) => option)).toEqual(lost);
      expect(faults?.[0].message).toMatch(/returned none, and there was one before/);
      expect((await call(live.url, identity.httpsAgent)).status).toBe(200);
    }
    expect(identity.certificate?.subject).toBe('CN=app-0');
    answer = pemsOf(clients[1]);
    expect(await identity.reload()).toBe(true);
    expect(identity.status.lastReloadFault).toBeUndefined();
  });

  it('asked to reload during a reload, it is asked once more, for all who asked by then', async () => {
    const { identity, answers } = await startHeld();
    const first = identity.reload();
    await until(() => answers.length === 1);
    const later = [identity.reload(), identity.reload()];
    answers[0](pemsOf(clients[0]));
    expect(await first).toBe(false);
    await until(() => answers.length === 2);
    answers[1](pemsOf(clients[1]));
    expect(await Promise.all(later)).toEqual([true, true]);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    expect(answers).toHaveLength(2);
  });

  it('asked to reload while it is asked anyway, it is asked once more after that', async () => {
    const { identity, answers } = await startHeld();
    await clock.advance(60_000);
    await until(() => answers.length === 1);
    const reloading = identity.reload();
    answers[0](pemsOf(clients[1]));
    await until(() => answers.length === 2);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    answers[1](pemsOf(clients[2]));
    expect(await reloading).toBe(true);
    expect(identity.certificate?.subject).toBe('CN=app-2');
    // One for its next turn, one for the expiry.
    expect(clock.timers).toBe(2);
  });

  it('may return a new chain alone', async () => {
    const current = { ...pemsOf(clients[0]) };
    const identity = await start({ source: () => ({ ...current }), reload: true, locate });
    current.chain = authority.root.certificate;
    expect(await identity.reload()).toBe(true);
    expect(lines).toEqual([
      expect.stringMatching(/^log: A new client identity is in use: "CN=app-0" .*, valid until 20/),
    ]);
  });

  it('that does not answer fails after 30 s', async () => {
    const opening = ClientIdentity.open({
      tls: { source: () => new Promise(() => undefined), reload: true, locate },
      maxSockets: 1,
      offerToTokenEndpoint: false,
      clock,
      log: SILENT,
    });
    await clock.advance(30_000);
    expect((await opening).faults[0].message).toMatch(/no answer within 30 s/);
  });

  it('that does not answer keeps the last good identity, and whoever asked to reload waits 30 s', async () => {
    const { identity } = await startHeld();
    const reloading = identity.reload();
    await clock.advance(30_000);
    expect(await reloading).toBe(false);
    expect(identity.status.lastReloadFault?.faults[0].message).toMatch(/no answer within 30 s/);
    expect(identity.certificate?.subject).toBe('CN=app-0');
  });
});

describe('When the server refuses the certificate', () => {
  it('the files are read once for all calls, and say whether another try makes sense', async () => {
    let asked = 0;
    let current = clients[0];
    const source = () => {
      asked++;
      return pemsOf(current);
    };
    const identity = await start({ source, reload: true, locate });
    const refused = identity.certificate;
    asked = 0;
    const all = await Promise.all(Array.from({ length: 100 }, () => identity.reloadAfterRefusal(refused)));
    expect(new Set(all)).toEqual(new Set([false]));
    expect(await identity.reloadAfterRefusal(refused)).toBe(false);
    expect(asked).toBe(1);
    current = clients[1];
    await clock.advance(9_999);
    expect(await identity.reloadAfterRefusal(refused)).toBe(false);
    expect(asked).toBe(1);
    await clock.advance(1);
    expect(await identity.reloadAfterRefusal(refused)).toBe(true);
    expect(await identity.reloadAfterRefusal(refused)).toBe(true);
    expect(asked).toBe(2);
  });

  it('the error names subject, fingerprint and dates', async () => {
    const identity = await start(tlsSettings(pemsOf(clients[0])));
    const error = certificateRefusedError(identity.certificate, 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', String);
    expect(error).toMatchObject({ code: 'certificate_refused', certificate: { subject: 'CN=app-0' } });
    expect(error.message).toMatch(
      /refused.*"CN=app-0" \(SHA-256 ([0-9A-F]{2}:){31}.*valid from \d{4}.* to \d{4}.*UNKNOWN_CA/s,
    );
    expect(error.hint).toMatch(/developer portal/);
    const old = await authority.client('old', { notBefore: new Date(0), notAfter: new Date(86_400_000) });
    const summary = { ...identity.certificate, subject: 'CN=old', validTo: old.x509.notAfter };
    const expired = certificateRefusedError(summary as CertificateSummary, undefined, String);
    expect(expired.message).toMatch(/to 1970-01-02T00:00:00Z\. It has expired/);
    expect(expired.hint).toMatch(/^Generate another one/);
    expect(error.message).not.toMatch(/It has expired/);
    expect(certificateRefusedError(undefined, undefined, String).message).toMatch(
      /asks for a client certificate and none is offered/,
    );
  });
});

describe('Expiry', () => {
  const inDays = (days: number) => new Date(Math.floor(clock.now() / 1000) * 1000 + days * DAY_MS);
  const ends = () =>
    lines.map((line) =>
      /^(\w+: \S+: "[^"]+").*?( ends in \d+ days?,| expired)/.exec(line)?.slice(1).join(''),
    );

  it('of ours is warned of each day in the last 30, and it is not healthy afterwards', async () => {
    const ending = await authority.client('ending', { notAfter: inDays(32.5) });
    const identity = await start(tlsSettings(pemsOf(ending)));
    expect(lines).toEqual([]);
    expect(identity.status).toMatchObject({ healthy: true, daysLeft: 32 });
    await clock.advance(2 * DAY_MS);
    expect(lines).toEqual([]);
    await clock.advance(DAY_MS);
    expect(lines).toEqual([
      expect.stringMatching(
        /^warn: tls\.certificate: "CN=ending" .* ends in 29 days, on \d{4}-.*Generate a new one/,
      ),
    ]);
    await clock.advance(28 * DAY_MS);
    expect(ends().at(-1)).toBe('warn: tls.certificate: "CN=ending" ends in 1 day,');
    await clock.advance(2 * DAY_MS);
    expect(ends().at(-1)).toBe('error: tls.certificate: "CN=ending" expired');
    expect(lines).toHaveLength(31);
    expect(identity.status).toMatchObject({ healthy: false, daysLeft: -1 });
    await identity.close();
    expect(clock.timers).toBe(0);
  });

  it('of what is sent after ours, and of the chain: each is named, the first that we send is the status', async () => {
    const old = { notBefore: new Date(0), notAfter: new Date(DAY_MS) };
    const [ca, other, root] = await Promise.all([
      issue('Issuing', { ca: true, notAfter: inDays(9.5) }),
      issue('Old', { ca: true, ...old }),
      issue('Root', { ca: true, notAfter: inDays(30.5) }),
    ]);
    const ours = await authority.client('ours', { notAfter: inDays(20.5) });
    const pems = { ...pemsOf(ours), certificate: ours.certificate + ca.certificate };
    pems.chain += other.certificate + root.certificate;
    const identity = await start(tlsSettings(pems));
    expect(ends()).toEqual([
      'warn: tls.certificate: "CN=ours" ends in 20 days,',
      'warn: tls.certificate: "CN=Issuing" ends in 9 days,',
      'error: tls.chain: "CN=Old" expired',
    ]);
    expect(identity.certificate?.subject).toBe('CN=ours');
    expect(identity.status).toMatchObject({
      healthy: true,
      certificate: { subject: 'CN=Issuing' },
      daysLeft: 9,
    });
    await clock.advance(10 * DAY_MS);
    expect(identity.status).toMatchObject({
      healthy: false,
      certificate: { subject: 'CN=Issuing' },
      daysLeft: -1,
    });
  });

  it('is looked for in the identity that is in use', async () => {
    let current = await authority.client('first', { notAfter: inDays(5.5) });
    const identity = await start({ source: () => pemsOf(current), reload: true, locate });
    current = clients[1];
    await identity.reload();
    lines.length = 0;
    await clock.advance(DAY_MS);
    expect(ends()).toEqual([]);
  });
});

describe('The two agents', () => {
  it('the token endpoint sees the client certificate only where it is offered', async () => {
    const live = await server({ demandCertificate: false, requestCert: true, rejectUnauthorized: false });
    for (const offerToTokenEndpoint of [false, true]) {
      const identity = await start(tlsSettings(pemsOf(clients[0])), { offerToTokenEndpoint });
      await call(live.url, identity.tokenAgent);
      await call(live.url, identity.httpsAgent);
    }
    expect(live.subjects).toEqual(['', 'app-0', 'app-0', 'app-0']);
  });

  it('the context of the token endpoint is made when it is first needed, also after a rotation', async () => {
    // Only contexts with the public roots call it, and they are what costs.
    const roots = jest.spyOn(
      Object.getPrototypeOf(createSecureContext().context) as { addRootCerts(): void },
      'addRootCerts',
    );
    const live = await server({ demandCertificate: false });
    let current = clients[0];
    const identity = await start({ source: () => pemsOf(current), reload: true, locate });
    for (const next of [clients[1], clients[2]]) {
      roots.mockClear();
      await call(live.url, identity.httpsAgent);
      expect(roots).not.toHaveBeenCalled();
      for (let count = 0; count < 2; count++) {
        await call(live.url, identity.tokenAgent, { headers: { connection: 'close' } });
        expect(roots).toHaveBeenCalledTimes(1);
      }
      current = next;
      expect(await identity.reload()).toBe(true);
      expect(roots).toHaveBeenCalledTimes(1);
    }
    roots.mockRestore();
  });

  it('have maxSockets connections, and one more for tokens', async () => {
    const { httpsAgent, tokenAgent } = await start(tlsSettings({}), { maxSockets: 7 });
    expect([httpsAgent.maxSockets, tokenAgent.maxSockets]).toEqual([7, 8]);
  });

  it('stay the same across identities, and without any certificate', async () => {
    const live = await server({ demandCertificate: false });
    const identity = await start(tlsSettings({ chain: authority.chain }));
    const { httpsAgent, tokenAgent } = identity;
    expect((await call(live.url, httpsAgent)).status).toBe(200);
    expect((await call(live.url, tokenAgent)).status).toBe(200);
    expect(identity.status).toEqual({ healthy: true });
  });

  it('the client sends the chain that stands after its certificate', async () => {
    // The server knows the root alone: it needs the intermediate from the client.
    const live = await server({ ca: authority.root.certificate });
    const pems = {
      ...pemsOf(clients[0]),
      certificate: clients[0].certificate + authority.intermediate.certificate,
    };
    const identity = await start(tlsSettings({ ...pems, chain: authority.root.certificate }));
    expect(identity.hasChain).toBe(true);
    expect((await call(live.url, identity.httpsAgent)).status).toBe(200);
  });

  it('without a chain, the public roots decide', async () => {
    const live = await server({ demandCertificate: false });
    const identity = await start(tlsSettings({}));
    expect(identity.hasChain).toBe(false);
    await expect(call(live.url, identity.httpsAgent)).rejects.toMatchObject({
      code: expect.stringMatching(/^UNABLE_TO_GET_ISSUER_CERT|^SELF_SIGNED_CERT_IN_CHAIN/),
    });
  });
});

it('names the issuer of the last certificate that is sent, unless that one signed itself', async () => {
  const [nameless, alone] = await Promise.all([issue('C=SA, O=Bank', { ca: true }), issue('alone')]);
  const named = await issue('app', { issuer: nameless });
  const { intermediate, root } = authority;
  for (const [certificate, key, expected] of [
    [clients[0].certificate, clients[0].key, 'CN=Service Intermediate'],
    [clients[0].certificate + intermediate.certificate, clients[0].key, 'CN=Service Root'],
    [clients[0].certificate + intermediate.certificate + root.certificate, clients[0].key, undefined],
    [named.certificate, named.key, 'C=SA, O=Bank'],
    [alone.certificate, alone.key, undefined],
  ] as const) {
    const identity = await start(tlsSettings({ certificate, privateKey: key, chain: authority.chain }));
    expect(identity.lastIssuer).toBe(expected);
  }
  expect((await start(tlsSettings({}))).lastIssuer).toBeUndefined();
});

it('reports every fault of what it was given', async () => {
  const { identity, faults, certificate } = await ClientIdentity.open({
    tls: tlsSettings({ certificate: clients[0].certificate, privateKey: clients[1].key, chain: '' }),
    maxSockets: 1,
    offerToTokenEndpoint: false,
    clock,
    log: SILENT,
  });
  expect(identity).toBeUndefined();
  expect(faults).toHaveLength(2);
  expect(certificate?.subject).toBe('CN=app-0');
});

it('close ends timers and connections', async () => {
  const live = await server();
  await mkdir(join(folder, 'sub'));
  await by(inPlace)(clients[0]);
  const identity = await start(tlsSettings({ ...paths(), chain: authority.chain }));
  await call(live.url, identity.httpsAgent);
  expect(clock.timers).toBe(2);
  await identity.close();
  expect(clock.timers).toBe(0);
  await until(() => live.sockets.size === 0);
  await expect(call(live.url, identity.httpsAgent)).rejects.toMatchObject({ code: 'ERR_AGENT_CLOSED' });
});

it('shows no key and no passphrase, at any depth', async () => {
  const live = await server();
  const passphrase = 'open-sesame-4711';
  const encrypted = createPrivateKey(clients[0].key).export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase,
  });
  const tls = tlsSettings({ ...pemsOf(clients[0]), privateKey: encrypted.toString(), passphrase });
  const identity = await start(tls);
  await call(live.url, identity.httpsAgent);
  for (const shown of [identity, identity.httpsAgent, identity.tokenAgent, identity.status]) {
    const text = inspect(shown, { depth: 20, showHidden: true }) + JSON.stringify(shown);
    expect(text).not.toMatch(/PRIVATE KEY|BEGIN CERT|open-sesame/);
  }
});
