import { afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import * as http from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { inspect } from 'node:util';
import { type TlsSettings } from '../../../lib/config/resolve-options.js';
import { type TlsIdentityPems } from '../../../lib/config/tls.options.js';
import { type CertificateSummary } from '../../../lib/errors/index.js';
import { verdictOfEnd } from '../../../lib/exchange/response.js';
import { ExchangeFault } from '../../../lib/exchange/fault.js';
import { certificateRefusedError } from '../../../lib/tls/certificate-summary.js';
import { ClientIdentity, type ClientIdentitySettings } from '../../../lib/tls/client-identity.js';
import { byRename, bySymlinkSwap, inPlace, type Replacement } from '../../helpers/certificate-files.js';
import { createAuthority, issue, type Authority, type Issued } from '../../helpers/certificates.js';
import { FakeClock } from '../../helpers/fake-clock.js';
import { rawServer } from '../../helpers/loopback.js';
import {
  sendRequest,
  mtlsServer,
  type MtlsServer,
  type MtlsServerOptions,
} from '../../helpers/mtls-server.js';
import { until } from '../../helpers/until.js';
import { locate, tlsSettings } from './tls-settings.js';

const DAY_MS = 86_400_000;
let authority: Authority;
let clients: Issued[];
let clock: FakeClock;
let folder: string;
let lines: string[];
const open: (() => unknown)[] = [];

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

function opening(tls: TlsSettings, settings: Partial<ClientIdentitySettings> = {}) {
  const note = (level: string) => (message: string) => void lines.push(`${level}: ${message}`);
  const log = { debug: note('debug'), log: note('log'), warn: note('warn'), error: note('error') };
  return ClientIdentity.open({ tls, maxSockets: 20, offerToTokenEndpoint: false, clock, log, ...settings });
}

async function start(tls: TlsSettings, settings?: Partial<ClientIdentitySettings>): Promise<ClientIdentity> {
  const { identity, faults } = await opening(tls, settings);
  expect(faults).toEqual([]);
  const opened = identity as ClientIdentity;
  open.push(() => opened.close());
  opened.startWatching();
  return opened;
}

async function server(options?: MtlsServerOptions): Promise<MtlsServer> {
  const live = await mtlsServer(authority, options);
  open.push(() => live.close());
  return live;
}

const pemsOf = ({ certificate, key }: Issued) => ({ certificate, privateKey: key, chain: authority.chain });
/** Followed by a function that returns what the test says. */
const from = (source: () => TlsIdentityPems | Promise<TlsIdentityPems>) => ({ source, reload: true, locate });
const paths = () => ({
  certificate: { file: join(folder, 'tls.crt') },
  privateKey: { file: join(folder, 'tls.key') },
});
const put = ({ certificate, key }: Issued, replace: Replacement = inPlace) =>
  replace(folder, { certificate, privateKey: key });
const errors = () => lines.filter((line) => line.startsWith('error'));

const REFUSED = new ExchangeFault({ kind: 'tls', phase: 'connecting', certificateVerdict: 'refused' });
/** The server may have refused the certificate, or it may have crashed. */
const CRASHED = new ExchangeFault({
  kind: 'reset',
  phase: 'connecting',
  certificateVerdict: 'perhaps-refused',
});

/** Looks for another certificate as a call does after this fault. */
const findOther = (identity: ClientIdentity, refused?: CertificateSummary, fault = REFUSED) =>
  identity.findOther(refused, { fault }, 'api');

/** The same, if the refused certificate has worked before. */
const findOtherOfAccepted = (identity: ClientIdentity, refused?: CertificateSummary) => {
  identity.rotation.accept(refused?.fingerprint256, 'api');
  return findOther(identity, refused);
};

describe('Certificate files that are replaced', () => {
  it.each([
    ['written in place', inPlace],
    ['renamed over', byRename],
    ['swapped by a symlink', bySymlinkSwap],
  ])('if %s, show each new certificate to the server, and notify the listeners', async (_, replace) => {
    const live = await server();
    await put(clients[0], replace);
    const identity = await start(tlsSettings({ ...paths(), chain: authority.chain }));
    const { httpsAgent } = identity;
    const changes: unknown[] = [];
    identity.onCertificateChange(() => changes.push(identity.certificate?.subject));
    for (const client of clients.slice(1)) {
      await sendRequest(live.url, httpsAgent);
      await put(client, replace);
      await clock.advance(5_000);
      await sendRequest(live.url, httpsAgent);
    }
    expect(live.subjects).toEqual(['app-0', 'app-1', 'app-1', 'app-2']);
    expect(changes).toEqual(['CN=app-1', 'CN=app-2']);
    expect(identity.httpsAgent).toBe(httpsAgent);
    expect(errors()).toEqual([]);
  });

  it('keep the last good certificate while they are half written or do not match, without a log line', async () => {
    const live = await server();
    await put(clients[0]);
    const identity = await start(tlsSettings({ ...paths(), chain: authority.chain }));
    await writeFile(paths().certificate.file, clients[1].certificate.slice(0, 100));
    await clock.advance(1_500);
    await put(clients[1]);
    await clock.advance(5_000);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    expect(errors()).toEqual([]);

    await writeFile(paths().certificate.file, clients[2].certificate);
    await clock.advance(130_000);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    expect(identity.status).toMatchObject({
      healthy: true,
      lastReloadFault: {
        at: expect.any(Date),
        faults: [{ option: 'tls.privateKey', message: expect.stringMatching(/another certificate/) }],
      },
    });
    expect(errors()).toHaveLength(1);
    await sendRequest(live.url, identity.httpsAgent);

    await writeFile(paths().privateKey.file, clients[2].key);
    await clock.advance(10_000);
    expect(identity.status.lastReloadFault).toBeUndefined();
    await sendRequest(live.url, identity.httpsAgent);
    expect(live.subjects).toEqual(['app-1', 'app-2']);
  });

  it('log every fault of a new identity on a line of its own, and no fault after the change was undone', async () => {
    await put(clients[0]);
    const identity = await start(tlsSettings(paths()));
    for (const { file } of Object.values(paths())) await writeFile(file, 'nonsense');
    await clock.advance(10_000);
    expect(lines).toEqual([
      expect.stringMatching(
        /^error: The new client identity is not usable; the one before stays in use:\n {2}- tls\.certificate: [^\n]+\.\n {2}- tls\.privateKey: [^\n]+\.$/,
      ),
    ]);
    expect(identity.status.lastReloadFault?.faults).toHaveLength(2);
    await put(clients[0]);
    await clock.advance(10_000);
    expect(identity.status.lastReloadFault).toBeUndefined();
  });

  it('use a certificate that is not valid yet as soon as it is valid', async () => {
    const early = await authority.client('early', { notBefore: new Date(clock.now() + 120_000) });
    await put(clients[0]);
    const identity = await start(tlsSettings(paths()));
    await put(early);
    await clock.advance(60_000);
    expect(identity.status.lastReloadFault?.faults[0].message).toMatch(/not valid before/);
    expect(identity.certificate?.subject).toBe('CN=app-0');
    await clock.advance(120_000);
    expect(identity.certificate?.subject).toBe('CN=early');
    expect(errors()).toHaveLength(1);
    expect(identity.status.lastReloadFault).toBeUndefined();
  });

  it('are not watched with reload: false, but reload() still reads them', async () => {
    await put(clients[0]);
    const identity = await start(tlsSettings(paths(), false));
    const before = identity.certificate;
    await put(clients[1]);
    await clock.advance(60_000);
    expect(await findOther(identity, before)).toBe(false);
    expect(identity.certificate).toEqual(before);
    expect(await identity.reload()).toBe(true);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    expect(await findOther(identity, before)).toBe(true);
    const lineCount = lines.length;
    expect(await identity.reload()).toBe(false);
    expect(lines).toHaveLength(lineCount);
  });
});

describe('tls as a function', () => {
  it('a tls function is called each minute and by reload(); if it throws, the last good identity stays, and no vault token is shown', async () => {
    let pems: () => TlsIdentityPems = () => pemsOf(clients[0]);
    let functionCalls = 0;
    const identity = await start(
      from(async () => {
        functionCalls++;
        return pems();
      }),
    );
    await clock.advance(61_000);
    expect(functionCalls).toBe(2);
    pems = () => pemsOf(clients[1]);
    await clock.advance(60_000);
    expect(identity.certificate?.subject).toBe('CN=app-1');
    pems = () => {
      throw new Error('hvs.secret-token is not allowed');
    };
    expect(await identity.reload()).toBe(false);
    const [fault] = identity.status.lastReloadFault?.faults ?? [];
    expect(fault).toMatchObject({ option: 'tls', message: expect.not.stringMatching('hvs') });
    expect(lines.join()).not.toMatch('hvs');
    pems = () => pemsOf(clients[2]);
    expect(await Promise.all([identity.reload(), identity.reload()])).toEqual([true, true]);
    expect(identity.certificate?.subject).toBe('CN=app-2');
  });

  it('a tls function that returns nothing, or leaves out certificate or chain, does not change the identity in use', async () => {
    const live = await server();
    let pems: TlsIdentityPems = pemsOf(clients[0]);
    const identity = await start(from(() => pems));
    const { certificate, privateKey, chain } = pemsOf(clients[1]);
    const lost = /returned none, but returned one before/;
    for (const [partial, options, message] of [
      [{ certificate, privateKey }, ['tls.chain'], lost],
      [{ chain }, ['tls.certificate'], lost],
      [{}, ['tls.certificate', 'tls.chain'], lost],
      [undefined as unknown as TlsIdentityPems, ['tls'], /returned no object/],
    ] as const) {
      pems = partial;
      expect(await identity.reload()).toBe(false);
      const faults = identity.status.lastReloadFault?.faults;
      expect(faults?.map(({ option }) => option)).toEqual(options);
      expect(faults?.[0].message).toMatch(message);
      expect((await sendRequest(live.url, identity.httpsAgent)).status).toBe(200);
    }
    expect(identity.certificate?.subject).toBe('CN=app-0');
    pems = pemsOf(clients[1]);
    expect(await identity.reload()).toBe(true);
    expect(identity.status.lastReloadFault).toBeUndefined();
  });

  it('a tls function may return the old certificate with a new chain, which does not count as a new certificate', async () => {
    const current = { ...pemsOf(clients[0]) };
    const identity = await start(from(() => ({ ...current })));
    let changes = 0;
    identity.onCertificateChange(() => (changes += 1));
    current.chain = authority.root.certificate;
    expect(await identity.reload()).toBe(true);
    expect(lines).toEqual([
      expect.stringMatching(/^log: A new client identity is in use: "CN=app-0" .*, valid until 20/),
    ]);
    expect(changes).toBe(0);
  });

  it('a new certificate from a tls function is used after one call of the function', async () => {
    const certificates = clients.values();
    const identity = await start(from(() => pemsOf(certificates.next().value ?? clients[0])));
    await clock.advance(60_000);
    expect(identity.certificate?.subject).toBe('CN=app-1');
  });

  it('a tls function that does not return fails after 30 s, and the last good identity stays', async () => {
    clock = new FakeClock({ start: Date.now() });
    let isHeld = false;
    const source = () => (isHeld ? new Promise<never>(() => undefined) : pemsOf(clients[0]));
    const identity = await start(from(source));
    isHeld = true;
    const reloading = identity.reload();
    await clock.advance(30_000);
    expect(await reloading).toBe(false);
    expect(identity.status.lastReloadFault?.faults[0].message).toMatch(/no response within 30 s/);
    expect(identity.certificate?.subject).toBe('CN=app-0');
    const starting = opening(from(source));
    await clock.advance(30_000);
    expect((await starting).faults[0].message).toMatch(/no response within 30 s/);
  });
});

describe('The readings of an identity', () => {
  /** A tls function whose calls the test ends. The first one, at the start, returns the first certificate. */
  function heldFunction() {
    const calls: ((issued: Issued) => Promise<void>)[] = [];
    let isFirst = true;
    const source = () => {
      if (isFirst) return ((isFirst = false), pemsOf(clients[0]));
      return new Promise<TlsIdentityPems>((resolve) =>
        calls.push((issued) => {
          resolve(pemsOf(issued));
          return clock.advance(0);
        }),
      );
    };
    return { calls, tls: from(source) };
  }
  const inUse = (identity: ClientIdentity) => identity.certificate?.subject;
  beforeEach(() => {
    clock = new FakeClock({ start: Date.now(), withFiles: true });
  });

  it('use changed files after they were read twice', async () => {
    await put(clients[0]);
    const identity = await start(tlsSettings(paths()));
    await clock.advance(3_000);
    await put(clients[1]);
    await clock.advance(2_999);
    expect(inUse(identity)).toBe('CN=app-0');
    await clock.advance(1);
    expect(inUse(identity)).toBe('CN=app-1');
  });

  it('wait while the files go on changing, and ignore a change that is undone', async () => {
    await put(clients[0]);
    const identity = await start(tlsSettings(paths()));
    for (const client of [1, 2, 1, 0, 2]) {
      await put(clients[client]);
      await clock.advance(2_000);
    }
    expect([inUse(identity), lines]).toEqual(['CN=app-0', []]);
    await clock.advance(2_000);
    expect(inUse(identity)).toBe('CN=app-2');
  });

  it('use changed files at once after reload(), and read at intervals only after startWatching()', async () => {
    await put(clients[0]);
    const identity = (await opening(tlsSettings(paths()))).identity!;
    open.push(() => identity.close());
    await put(clients[1]);
    expect([await identity.reload(), inUse(identity), clock.timers]).toEqual([true, 'CN=app-1', 0]);
    identity.startWatching();
    await put(clients[2]);
    await clock.advance(4_000);
    expect(inUse(identity)).toBe('CN=app-2');
  });

  it('run one after the other, and share one more reading between all callers of reload() that come during a reading', async () => {
    clock = new FakeClock({ start: Date.now() });
    const { calls, tls } = heldFunction();
    const identity = await start(tls);
    await clock.advance(60_000);
    const first = Promise.all([identity.reload(), identity.reload()]);
    await clock.advance(0);
    expect(calls).toHaveLength(1);
    await calls[0](clients[1]);
    expect([calls.length, inUse(identity)]).toEqual([2, 'CN=app-1']);
    const second = Promise.all([identity.reload(), identity.reload()]);
    await calls[1](clients[2]);
    expect([await first, inUse(identity), calls.length]).toEqual([[true, true], 'CN=app-2', 3]);
    await calls[2](clients[0]);
    expect([await second, inUse(identity), calls.length]).toEqual([[true, true], 'CN=app-0', 3]);
  });

  it('run in the async context of startWatching(), even after others have called reload()', async () => {
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    // Timers call back in the context that set them.
    const { watch: plan } = clock;
    clock.watch = (callback, delayMs) => plan.call(clock, AsyncResource.bind(callback), delayMs);
    const source = () => (seen.push(context.getStore()), pemsOf(clients[0]));
    const identity = (await opening(from(source))).identity!;
    open.push(() => identity.close());
    context.run('start', () => identity.startWatching());
    await context.run('call', () => identity.reload());
    await clock.advance(60_000);
    const reading = context.run('call', () => identity.reload());
    await clock.advance(120_000);
    await reading;
    expect(seen).toEqual([undefined, 'call', 'start', 'call', 'start', 'start']);
  });

  it('go on after an unexpected error', async () => {
    const fail = (): never => {
      throw new Error('nobody foresaw it');
    };
    let current = clients[0];
    const log = { debug: fail, log: fail, warn: fail, error: fail };
    const identity = await start(
      from(() => pemsOf(current)),
      { log },
    );
    for (current of clients.slice(1)) await clock.advance(60_000);
    expect(inUse(identity)).toBe('CN=app-2');
    current = clients[0];
    await identity.reload();
    expect(inUse(identity)).toBe('CN=app-0');
  });

  it('set no timer after close(), and a reading in progress is not used', async () => {
    clock = new FakeClock({ start: Date.now() });
    const { calls, tls } = heldFunction();
    const identity = await start(tls);
    await clock.advance(60_000);
    await identity.close();
    await calls[0](clients[1]);
    expect([inUse(identity), clock.timers]).toEqual(['CN=app-0', 0]);
  });
});

describe('Certificate refused by the server', () => {
  it('a refused certificate is read again once for all calls, at most every 10 s, and each call learns whether another one is in use', async () => {
    let functionCalls = 0;
    let current = clients[0];
    const identity = await start(
      from(() => {
        functionCalls++;
        return pemsOf(current);
      }),
    );
    const refused = identity.certificate;
    functionCalls = 0;
    const all = await Promise.all(Array.from({ length: 100 }, () => findOther(identity, refused)));
    expect(new Set(all)).toEqual(new Set([false]));
    expect(await findOther(identity, refused)).toBe(false);
    expect(functionCalls).toBe(1);
    current = clients[1];
    await clock.advance(9_999);
    expect(await findOther(identity, refused)).toBe(false);
    expect(functionCalls).toBe(1);
    await clock.advance(1);
    expect(await findOther(identity, refused)).toBe(true);
    expect(await findOther(identity, refused)).toBe(true);
    expect(functionCalls).toBe(2);
  });

  it('certificate files are read again, but a tls function is not called, if the refusal is only a guess', async () => {
    let functionCalls = 0;
    const ofFunction = await start(from(() => ((functionCalls += 1), pemsOf(clients[0]))));
    functionCalls = 0;
    expect(await findOther(ofFunction, ofFunction.certificate, CRASHED)).toBe(false);
    expect(functionCalls).toBe(0);
    await put(clients[0], bySymlinkSwap);
    const ofFiles = await start(tlsSettings({ ...paths(), chain: authority.chain }));
    const refused = ofFiles.certificate;
    await put(clients[1], bySymlinkSwap);
    expect(await findOther(ofFiles, refused, CRASHED)).toBe(true);
  });

  describe('Refused certificate that worked before', () => {
    /** The result of findOther(), and after how many milliseconds it came. */
    const outcomeOf = (identity: ClientIdentity, refused?: CertificateSummary) => {
      const outcome: { hasOther?: boolean; atMs?: number } = {};
      const begun = clock.monotonic();
      void findOtherOfAccepted(identity, refused).then((hasOther) => {
        Object.assign(outcome, { hasOther, atMs: clock.monotonic() - begun });
      });
      return outcome;
    };

    it('waiting calls go on as soon as a new certificate is found', async () => {
      await put(clients[0], bySymlinkSwap);
      const identity = await start(tlsSettings({ ...paths(), chain: authority.chain }));
      const refused = identity.certificate;
      const first = outcomeOf(identity, refused);
      await clock.advance(400);
      await put(clients[1], bySymlinkSwap);
      const second = outcomeOf(identity, refused);
      await clock.advance(599);
      expect([first, second]).toEqual([{}, {}]);
      await clock.advance(1);
      await until(() => second.hasOther);
      expect([first, second]).toEqual([
        { hasOther: true, atMs: 1_000 },
        { hasOther: true, atMs: 600 },
      ]);
    });

    it('waiting calls read the certificate a last time after 2 s, even if the previous reading was less than a second ago', async () => {
      await put(clients[0], bySymlinkSwap);
      const identity = await start(tlsSettings({ ...paths(), chain: authority.chain }));
      const refused = identity.certificate;
      await findOther(identity, refused);
      await clock.advance(50);
      const call = outcomeOf(identity, refused);
      await clock.advance(1_970);
      await put(clients[1], bySymlinkSwap);
      await clock.advance(30);
      await until(() => call.hasOther !== undefined);
      expect(call).toEqual({ hasOther: true, atMs: 2_000 });
    });

    it('calls wait 2 s for a new certificate, then fail without waiting, and wait again a minute after the first refusal', async () => {
      await put(clients[0], bySymlinkSwap);
      const identity = await start(tlsSettings({ ...paths(), chain: authority.chain }));
      const refused = identity.certificate;
      const first = outcomeOf(identity, refused);
      await clock.advance(2_000);
      await until(() => first.atMs);
      expect(first).toEqual({ hasOther: false, atMs: 2_000 });
      await clock.advance(58_000);
      const later = outcomeOf(identity, refused);
      await until(() => later.hasOther !== undefined);
      expect(later).toEqual({ hasOther: false, atMs: 0 });
      await clock.advance(1_000);
      const nextMinute = outcomeOf(identity, refused);
      await clock.advance(1_000);
      expect(nextMinute).toEqual({});
      await identity.close();
      await clock.advance(1_000);
      expect(clock.timers).toBe(0);
    });

    it('a tls function is called at most once in 10 s, and calls do not wait for its next turn', async () => {
      let functionCalls = 0;
      const identity = await start(
        from(() => {
          functionCalls += 1;
          return pemsOf(clients[0]);
        }),
      );
      functionCalls = 0;
      const refused = identity.certificate;
      for (let second = 0; second <= 10; second += 1) {
        expect(await findOtherOfAccepted(identity, refused)).toBe(false);
        await clock.advance(1_000);
      }
      expect(functionCalls).toBe(2);
    });
  });

  it('the error of a refused certificate names its subject, fingerprint and dates', async () => {
    const { certificate } = await start(tlsSettings(pemsOf(clients[0])));
    const reason = 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA';
    const words = ['api fault tls sent certificate-refused'];
    const error = certificateRefusedError(words, { certificate, reason }, String);
    expect(error).toMatchObject({ code: 'certificate_refused', certificate: { subject: 'CN=app-0' } });
    expect(error.message).toMatch(
      /refused.*"CN=app-0" \(SHA-256 ([0-9A-F]{2}:){31}.*valid from \d{4}.* to \d{4}.*UNKNOWN_CA/s,
    );
    expect(error.hint).toMatch(/developer portal/);
    const summary = { ...certificate, subject: 'CN=old', validTo: new Date(DAY_MS) } as CertificateSummary;
    const expired = certificateRefusedError(words, { certificate: summary }, String);
    expect(expired.message).toMatch(/to 1970-01-02T00:00:00Z\. It has expired/);
    expect(expired.hint).toMatch(/^Generate a new one/);
    expect(error.message).not.toMatch(/It has expired/);
    const none = ['api fault tls sent certificate-not-sent no-certificate'];
    expect(certificateRefusedError(none, {}, String).message).toMatch(
      /asks for a client certificate and none is offered/,
    );
  });

  it.each(['Ed25519', 'secp256k1'])(
    'the error for TLS alert 116 says that the certificate was not sent, and names its key type %s',
    async (keyType) => {
      const { certificate } = await start(tlsSettings(pemsOf(clients[0])));
      const reason = 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED';
      const verdict = verdictOfEnd({ alert: 116 }, { keyType }, { isOverForUs: true, isPending: true });
      const { message, hint, options } = certificateRefusedError(
        [`api fault tls sent certificate-${verdict}`],
        { certificate, reason, keyType },
        String,
      );
      expect(message).toContain(
        `The client certificate was not sent, or did not arrive: the server accepts no key of this type (${keyType}), or a proxy in front of it ended TLS. It is "CN=app-0"`,
      );
      expect(hint).toMatch(keyType === 'Ed25519' ? /^Ask .* which types/ : /^TLS 1\.3 has no signature/);
      expect(options?.[0]).toBe('tls.certificate');
    },
  );

  it.each([
    [
      'is valid',
      -1,
      1,
      /^If this machine's clock is right, .* list of revoked certificates \(CRL\).*operator\. The guide has all steps/,
    ],
    ['has expired', -2, -1, /^Generate a new one/],
    ['is not yet valid', 1, 2, /^In the developer portal, compare/],
  ])(
    'the error for TLS alert 45, while the certificate %s, leads to its likeliest cause',
    (_, from, to, says) => {
      const day = (days: number) => new Date(Date.now() + days * DAY_MS);
      const dates = { validFrom: day(from), validTo: day(to) };
      const certificate = { subject: 'CN=app', issuer: 'CN=ca', fingerprint256: 'AA', ...dates };
      const words = ['api fault tls sent ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED certificate-refused'];
      expect(certificateRefusedError(words, { certificate }, String).hint).toMatch(says);
    },
  );

  it('the error of a refused certificate names the issuer of the last certificate sent, unless that certificate is self-signed', async () => {
    const [nameless, alone] = await Promise.all([issue('C=SA, O=Bank', { ca: true }), issue('alone')]);
    const named = await issue('app', { issuer: nameless });
    const { intermediate, root } = authority;
    const [{ certificate: own, key }] = clients;
    for (const [certificate, privateKey, expected] of [
      [own, key, 'CN=Service Intermediate'],
      [own + intermediate.certificate, key, 'CN=Service Root'],
      [own + intermediate.certificate + root.certificate, key, undefined],
      [named.certificate, named.key, 'C=SA, O=Bank'],
      [alone.certificate, alone.key, undefined],
      [undefined, undefined, undefined],
    ] as const) {
      const identity = await start(tlsSettings({ certificate, privateKey, chain: authority.chain }));
      expect(identity.lastIssuer).toBe(expected);
    }
  });
});

describe('Expiry warnings', () => {
  const inDays = (days: number) => new Date(Math.floor(clock.now() / 1000) * 1000 + days * DAY_MS);
  const ends = () =>
    lines.map((line) =>
      line
        .replace(/ \(SHA-256 [^)]*\)/g, '')
        .replace(/,? on [^;.]*/g, '')
        .replace(/\. [^.]*\.$/, ''),
    );
  /** Certificates that start in 1970 are long-lived, so that the warnings start 30 days before the end. */
  const notBefore = new Date(0);

  it('come each day in the last 30 days of our certificate, which is not healthy afterwards', async () => {
    const ending = await authority.client('ending', { notBefore, notAfter: inDays(32.5) });
    const identity = await start(tlsSettings(pemsOf(ending)));
    expect(lines).toEqual([]);
    expect(identity.status).toMatchObject({ healthy: true, daysLeft: 32 });
    await clock.advance(2 * DAY_MS);
    expect(lines).toEqual([]);
    await clock.advance(DAY_MS);
    expect(lines).toEqual([
      expect.stringMatching(
        /^warn: tls\.certificate: "CN=ending" .* expires in 29 days, on \d{4}-.*Generate a new one/,
      ),
    ]);
    await clock.advance(28 * DAY_MS);
    expect(ends().at(-1)).toBe('warn: tls.certificate: "CN=ending" expires in 1 day');
    await clock.advance(2 * DAY_MS);
    expect(ends().at(-1)).toBe('error: tls.certificate: "CN=ending" expired');
    expect(lines).toHaveLength(31);
    expect(identity.status).toMatchObject({ healthy: false, daysLeft: -1 });
  });

  it('name each certificate of the chain too, and identityStatus shows the first one to expire of those that we send', async () => {
    const old = { notBefore, notAfter: new Date(DAY_MS) };
    const [ca, other, root] = await Promise.all([
      issue('Issuing', { ca: true, notBefore, notAfter: inDays(9.5) }),
      issue('Old', { ca: true, ...old }),
      issue('Root', { ca: true, notBefore, notAfter: inDays(30.5) }),
    ]);
    const ours = await authority.client('ours', { notBefore, notAfter: inDays(20.5) });
    const pems = { ...pemsOf(ours), certificate: ours.certificate + ca.certificate };
    pems.chain += other.certificate + root.certificate;
    const identity = await start(tlsSettings(pems));
    expect(ends()).toEqual([
      'warn: tls.certificate: "CN=ours" expires in 20 days; "CN=Issuing" expires in 9 days',
      'error: tls.chain: "CN=Old" expired',
    ]);
    expect(identity.certificate?.subject).toBe('CN=ours');
    const certificate = { subject: 'CN=Issuing' };
    expect(identity.status).toMatchObject({ healthy: true, certificate, daysLeft: 9 });
    await clock.advance(10 * DAY_MS);
    expect(identity.status).toMatchObject({ healthy: false, certificate, daysLeft: -1 });
  });

  it('come once in the last 8 hours of a certificate that lives for a day', async () => {
    const ofADay = { notBefore: inDays(0), notAfter: inDays(1) };
    const identity = await start(tlsSettings(pemsOf(await authority.client('short', ofADay))));
    await clock.advance((15.9 / 24) * DAY_MS);
    expect(lines).toEqual([]);
    await clock.advance((0.4 / 24) * DAY_MS);
    expect(ends()).toEqual(['warn: tls.certificate: "CN=short" expires within a day']);
    await clock.advance((7.6 / 24) * DAY_MS);
    expect(lines).toHaveLength(1);
    await clock.advance((0.3 / 24) * DAY_MS);
    expect(ends().at(-1)).toBe('error: tls.certificate: "CN=short" expired');
    expect(identity.status.healthy).toBe(false);
  });

  it('are one line a day for many expired roots, and name a certificate without a subject by its DNS name or serial number', async () => {
    const spiffe = await issue('', { ca: true, notBefore, notAfter: new Date(DAY_MS), names: ['a.example'] });
    const nameless = await issue('', { ca: true, notBefore, notAfter: new Date(DAY_MS) });
    const more = await Promise.all(
      ['A', 'B', 'C'].map((name) => issue(name, { ca: true, notBefore, notAfter: new Date(DAY_MS) })),
    );
    const chain = [
      ...[spiffe, nameless, ...more].map(({ certificate }) => certificate),
      authority.chain,
    ].join('');
    await start(tlsSettings({ ...pemsOf(clients[0]), chain }));
    const { serialNumber } = new X509Certificate(nameless.certificate);
    const line = `error: tls.chain: "DNS:a.example" expired; "serial number ${serialNumber}" expired; "CN=A" expired; and 2 more`;
    expect(ends()).toEqual([line]);
    await clock.advance(2.5 * DAY_MS);
    expect(ends()).toEqual([line, line, line]);
  });

  it('stop for a certificate that has been replaced', async () => {
    let current = await authority.client('first', { notBefore, notAfter: inDays(5.5) });
    const identity = await start(from(() => pemsOf(current)));
    current = clients[1];
    await identity.reload();
    lines.length = 0;
    await clock.advance(DAY_MS);
    expect(ends()).toEqual([]);
  });
});

describe('tls.chain', () => {
  const withoutChain = () => ({ ...pemsOf(clients[0]), chain: undefined });

  it.each([
    ['a missing tls.chain is a fault if the mode requires a chain', {}, 'required', ['tls.chain']],
    [
      'a missing tls.chain is no fault with publicRoots, even if the mode requires a chain',
      { publicRoots: true },
      'required',
      [],
    ],
    ['a missing tls.chain is no fault if the mode only advises a chain', {}, 'advised', []],
    ['a missing tls.chain is no fault if the mode says nothing about a chain', {}, undefined, []],
  ] as const)('%s', async (_, given, needsChain, expected) => {
    const text = await opening({ ...tlsSettings(withoutChain()), ...given, needsChain });
    expect(text.faults.map(({ option }) => option)).toEqual(expected);
    for (const { variable, message } of text.faults) {
      expect(variable).toBe('SERVICE_TLS_CHAIN');
      expect(message).toMatch(
        /5\.2\.4.*set tls\.publicRoots \(SERVICE_TLS_PUBLIC_ROOTS\) to true instead\.$/,
      );
    }
    if (text.identity) expect(text.identity.loaded.lacksChain).toBe(needsChain === 'advised');
    const returned = await opening({ ...from(() => ({ ...withoutChain(), ...given })), needsChain });
    expect(returned.faults.map(({ option }) => option)).toEqual(expected);
    for (const { message } of returned.faults)
      expect(message).toMatch(/set tls\.publicRoots to true instead/);
  });

  it('is not needed without a client certificate, even if the mode requires a chain', async () => {
    expect((await opening({ ...tlsSettings({}), needsChain: 'required' })).faults).toEqual([]);
  });

  it('counts as set (hasChain) even with publicRoots: true', async () => {
    const { chain } = authority;
    expect((await start({ ...tlsSettings({ chain }), publicRoots: true })).hasChain).toBe(true);
  });

  it('must not disappear at a reload: the last good identity stays, unless publicRoots is true', async () => {
    let pems: TlsIdentityPems = { ...withoutChain(), publicRoots: true };
    const identity = await start({ ...from(() => pems), needsChain: 'required' });
    pems = withoutChain();
    expect(await identity.reload()).toBe(false);
    expect(identity.status.lastReloadFault?.faults).toMatchObject([{ option: 'tls.chain' }]);
    pems = pemsOf(clients[0]);
    expect(await identity.reload()).toBe(true);
    expect(identity.hasChain).toBe(true);
    pems = withoutChain();
    expect(await identity.reload()).toBe(false);
    pems = { ...withoutChain(), publicRoots: true };
    expect(await identity.reload()).toBe(true);
    expect(identity.hasChain).toBe(false);
  });

  it('leaves a server with a private authority unverified, and refused, if it is not set', async () => {
    const live = await server({ demandCertificate: false });
    const { httpsAgent, hasChain } = await start(tlsSettings({}));
    expect(hasChain).toBe(false);
    await expect(sendRequest(live.url, httpsAgent)).rejects.toMatchObject({
      code: expect.stringMatching(/^UNABLE_TO_GET_ISSUER_CERT|^SELF_SIGNED_CERT_IN_CHAIN/),
    });
  });
});

describe('The agents of an identity', () => {
  it('offer the client certificate, also after a rotation, to the token endpoint only with offerToTokenEndpoint', async () => {
    const live = await server({ demandCertificate: false, requestCert: true, rejectUnauthorized: false });
    for (const offerToTokenEndpoint of [false, true]) {
      let current = clients[0];
      const identity = await start(
        from(() => pemsOf(current)),
        { offerToTokenEndpoint },
      );
      for (current of clients.slice(0, 2)) {
        await identity.reload();
        await sendRequest(live.url, identity.tokenAgent);
        await sendRequest(live.url, identity.httpsAgent);
      }
    }
    expect(live.subjects).toEqual(['', 'app-0', '', 'app-1', 'app-0', 'app-0', 'app-1', 'app-1']);
  });

  it('create the secure context of the token endpoint at its first connection, also after a rotation', async () => {
    // Only a context with the public roots calls addRootCerts(), and loading those roots is expensive.
    const roots = jest.spyOn(
      Object.getPrototypeOf(createSecureContext().context) as { addRootCerts(): void },
      'addRootCerts',
    );
    open.push(() => roots.mockRestore());
    const live = await server({ demandCertificate: false });
    let current = clients[0];
    const identity = await start(from(() => pemsOf(current)));
    for (const next of [clients[1], clients[2]]) {
      roots.mockClear();
      await sendRequest(live.url, identity.httpsAgent);
      expect(roots).not.toHaveBeenCalled();
      for (let count = 0; count < 2; count++) {
        await sendRequest(live.url, identity.tokenAgent, { headers: { connection: 'close' } });
        expect(roots).toHaveBeenCalledTimes(1);
      }
      current = next;
      expect(await identity.reload()).toBe(true);
      expect(roots).toHaveBeenCalledTimes(1);
    }
  });

  it('work without any certificate', async () => {
    const live = await server({ demandCertificate: false });
    const identity = await start(tlsSettings({ chain: authority.chain }));
    for (const agent of [identity.httpsAgent, identity.tokenAgent])
      expect((await sendRequest(live.url, agent)).status).toBe(200);
    expect(identity.status).toEqual({ healthy: true });
  });

  it('send the chain that follows the certificate', async () => {
    // The server knows only the root, so the client must send the intermediate certificate.
    const live = await server({ ca: authority.root.certificate });
    const pems = pemsOf(clients[0]);
    pems.certificate += authority.intermediate.certificate;
    const identity = await start(tlsSettings({ ...pems, chain: authority.root.certificate }));
    expect(identity.hasChain).toBe(true);
    expect((await sendRequest(live.url, identity.httpsAgent)).status).toBe(200);
  });

  it.each(['https', 'http'])(
    'allow one connection more for tokens than for calls over %s',
    async (protocol) => {
      const url = new URL(`${protocol}://localhost`);
      const identity = await start(tlsSettings({}), { maxSockets: 7 });
      expect([identity.agentFor(url), identity.tokenAgentFor(url)]).toMatchObject([
        { maxSockets: 7 },
        { maxSockets: 8 },
      ]);
      const isTls = protocol === 'https';
      expect([identity.httpsAgent, identity.tokenAgent].includes(identity.agentFor(url) as never)).toBe(
        isTls,
      );
      expect(identity.agentFor(url)).not.toBe(identity.tokenAgentFor(url));
    },
  );

  it('show no key, certificate or passphrase when they are printed, idle and while requests wait', async () => {
    const held: http.ServerResponse[] = [];
    const live = await server({
      onRequest: ({ url }, response) => void (url === '/held' ? held.push(response) : response.end()),
    });
    const passphrase = 'open-sesame-4711';
    const cipher = { cipher: 'aes-256-cbc', passphrase };
    const encrypted = createPrivateKey(clients[0].key).export({ type: 'pkcs8', format: 'pem', ...cipher });
    const pems = { ...pemsOf(clients[0]), privateKey: encrypted.toString(), passphrase };
    const identity = await start(tlsSettings(pems), { maxSockets: 1 });
    const { httpsAgent } = identity;
    const json = () => JSON.stringify([identity, httpsAgent, identity.tokenAgent, identity.status]);
    await sendRequest(live.url, httpsAgent);
    await until(() => Object.keys(httpsAgent.freeSockets).length > 0);
    const text = [identity, httpsAgent, identity.tokenAgent]
      .map((each) => inspect(each, { depth: 20, showHidden: true, getters: true }))
      .join();
    const idle = text + json();
    const calls = Promise.allSettled([1, 2].map(() => sendRequest(`${live.url}/held`, httpsAgent)));
    await until(() => held.length === 1 && Object.keys(httpsAgent.requests).length === 1);
    const shown = idle + json();
    expect(shown).not.toMatch(/PRIVATE KEY|BEGIN CERT|open-sesame|"(sockets|freeSockets|requests)":/);
    expect(shown).not.toMatch(clients[0].key.split('\n')[1]);
    await identity.close();
    await calls;
  });
});

describe('Closing an identity', () => {
  /** A server that responds to /quick at once, and never to any other path. */
  async function plainServer() {
    const held: unknown[] = [];
    const server = await rawServer((socket) =>
      socket.on('data', (head) => {
        if (head.toString().startsWith('GET /quick')) socket.write('HTTP/1.1 204 None\r\n\r\n');
        else held.push(socket.once('close', () => held.pop()));
      }),
    );
    open.push(() => server.close());
    const request = async (path: string, identity: ClientIdentity): Promise<unknown> => {
      const url = new URL(path, server.url);
      const outgoing = http.get(url, { agent: identity.agentFor(url) }, (response) => response.resume());
      const ended = await Promise.race([once(outgoing, 'error'), once(outgoing, 'close')]);
      return (ended[0] as NodeJS.ErrnoException | undefined)?.code;
    };
    return { held, request };
  }

  it('ends timers and connections over TLS', async () => {
    const live = await server();
    await put(clients[0]);
    const identity = await start(tlsSettings({ ...paths(), chain: authority.chain }));
    await sendRequest(live.url, identity.httpsAgent);
    expect(clock.timers).toBe(2);
    await identity.close();
    expect(clock.timers).toBe(0);
    await until(() => live.sockets.size === 0);
    await expect(sendRequest(live.url, identity.httpsAgent)).rejects.toMatchObject({
      code: 'ERR_AGENT_CLOSED',
    });
    identity.startWatching();
    expect(clock.timers).toBe(0);
  });

  it('watches no files if it is closed before it starts to watch', async () => {
    const { identity } = await opening(tlsSettings(pemsOf(clients[0])));
    await identity?.close();
    identity?.startWatching();
    expect(clock.timers).toBe(0);
  });

  it('ends requests over plain http, and opens no connection for waiting ones', async () => {
    const { held, request } = await plainServer();
    const identity = await start(tlsSettings({}), { maxSockets: 1 });
    const calls = Promise.all([request('/slow', identity), request('/slow', identity)]);
    await until(() => held.length === 1);
    await identity.close(60_000);
    expect(await calls).toEqual(['ECONNRESET', 'ERR_AGENT_CLOSED']);
    await until(() => held.length === 0);
  });

  it('takes no time if nothing is in flight', async () => {
    const { request } = await plainServer();
    const identity = await start(tlsSettings({}));
    expect(await Promise.all([request('/quick', identity), request('/quick', identity)])).toEqual([
      undefined,
      undefined,
    ]);
    const { length } = Object.values(identity.agentFor({ protocol: 'http:' }).freeSockets);
    expect(length).toBe(1);
    await identity.close(60_000);
    expect(identity.agentFor({ protocol: 'http:' }).freeSockets).toEqual({});
  });
});
