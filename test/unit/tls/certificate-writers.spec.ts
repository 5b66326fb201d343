import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { appendFile, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConfigurationFault } from '../../../lib/errors/index.js';
import { ExchangeFault } from '../../../lib/exchange/fault.js';
import { ClientIdentity } from '../../../lib/tls/client-identity.js';
import { createAuthority, issue, type Authority, type Issued } from '../../helpers/certificates.js';
import { FakeClock } from '../../helpers/fake-clock.js';
import { soakOr } from '../../helpers/in-soak.js';
import { mtlsServer, sendRequest, type MtlsServer } from '../../helpers/mtls-server.js';
import { locate, tlsSettings } from './tls-settings.js';

const REFUSED = new ExchangeFault({ kind: 'tls', phase: 'connecting', certificateVerdict: 'refused' });

/** Of the server. */
let service: Authority;
/** Of the clients. A server would find the intermediate certificate among its own, if it had the same. */
let authority: Authority;
let first: Issued;
let withNewKey: Issued;
let withSameKey: Issued;
/** Knows the root alone, so that clients have to send the intermediate certificate. */
let server: MtlsServer;
let clock: FakeClock;
let folder: string;
let lines: string[];
let identity: ClientIdentity;

beforeAll(async () => {
  [service, authority] = await Promise.all([createAuthority(), createAuthority('Client')]);
  [first, withNewKey] = await Promise.all([authority.client('first'), authority.client('next')]);
  withSameKey = await authority.client('next', { keys: first.keys });
});
beforeEach(async () => {
  server = await mtlsServer(service, { ca: authority.root.certificate });
  clock = new FakeClock({ start: Date.now(), withFiles: true });
  lines = [];
  folder = await mkdtemp(join(tmpdir(), 'writers-'));
});
afterEach(async () => {
  await identity.close();
  await server.close();
  await rm(folder, { recursive: true });
});

const pathOf = (name: string) => join(folder, name);
const whole = ({ certificate }: Issued) => certificate + authority.intermediate.certificate;

async function open(settings: Parameters<typeof ClientIdentity.open>[0]['tls']): Promise<ClientIdentity> {
  const note = (level: string) => (message: string) => void lines.push(`${level}: ${message}`);
  const log = { debug: note('debug'), log: note('log'), warn: note('warn'), error: note('error') };
  const opened = await ClientIdentity.open({
    tls: settings,
    maxSockets: 20,
    offerToTokenEndpoint: false,
    clock,
    log,
  });
  expect(opened.faults).toEqual([]);
  identity = opened.identity!;
  identity.startWatching();
  return identity;
}

/** Opens an identity whose files are there. */
const openFiles = (certificate: string, key = 'tls.key') =>
  open(
    tlsSettings({
      certificate: { file: pathOf(certificate) },
      privateKey: { file: pathOf(key) },
      chain: service.chain,
    }),
  );
const inUse = () => identity.certificate?.subject;
const faults = (): ConfigurationFault[] => identity.status.lastReloadFault?.faults ?? [];
const call = () => sendRequest(server.url, identity.httpsAgent, { headers: { connection: 'close' } });

/** A new link in place of an old one, as `ln -sf` and certbot make it: for a moment there is none. */
async function relink(target: string, name: string): Promise<void> {
  await unlink(pathOf(name)).catch(() => undefined);
  await symlink(target, pathOf(name));
}

/** How long a writer pauses, in milliseconds, and what it does then. */
type Step = [pauseMs: number, write: () => Promise<void>];

interface Writer {
  name: string;
  next: () => Issued;
  certificate?: string;
  key?: string;
  /** Puts the first certificate there. Default: `tls.crt` and `tls.key`. */
  before?: () => Promise<void>;
  steps: (next: Issued) => Step[];
}

const put = (name: string, content: string) => () => writeFile(pathOf(name), content);
const append = (name: string, content: string) => () => appendFile(pathOf(name), content);
const move = (from: string, to: string) => () => rename(pathOf(from), pathOf(to));

const WRITERS: Writer[] = [
  {
    name: 'certmonger: the key, then the certificate',
    next: () => withNewKey,
    steps: (next) => [
      [0, put('tls.key', next.key)],
      [1_200, put('tls.crt', whole(next))],
    ],
  },
  {
    name: 'certbot: new files, then one link after the other',
    next: () => withNewKey,
    certificate: 'fullchain.pem',
    key: 'privkey.pem',
    before: async () => {
      await writeFile(pathOf('fullchain1.pem'), whole(first));
      await writeFile(pathOf('privkey1.pem'), first.key);
      await relink('fullchain1.pem', 'fullchain.pem');
      await relink('privkey1.pem', 'privkey.pem');
    },
    steps: (next) => [
      [0, put('privkey2.pem', next.key)],
      [100, put('fullchain2.pem', whole(next))],
      [100, () => unlink(pathOf('privkey.pem'))],
      [300, () => relink('privkey2.pem', 'privkey.pem')],
      [300, () => unlink(pathOf('fullchain.pem'))],
      [300, () => relink('fullchain2.pem', 'fullchain.pem')],
    ],
  },
  {
    name: 'lego: certificate with issuer, issuer and key, in place',
    next: () => withNewKey,
    steps: (next) => [
      [0, put('tls.crt', '')],
      [300, append('tls.crt', next.certificate)],
      [300, append('tls.crt', authority.intermediate.certificate)],
      [300, put('tls.issuer.crt', authority.intermediate.certificate)],
      [300, put('tls.key', '')],
      [300, append('tls.key', next.key)],
    ],
  },
  {
    name: 'dehydrated: files with a time in their name, then links',
    next: () => withNewKey,
    certificate: 'fullchain.pem',
    key: 'privkey.pem',
    before: async () => {
      await writeFile(pathOf('fullchain-1.pem'), whole(first));
      await writeFile(pathOf('privkey-1.pem'), first.key);
      await relink('fullchain-1.pem', 'fullchain.pem');
      await relink('privkey-1.pem', 'privkey.pem');
    },
    steps: (next) => [
      [0, put('privkey-2.pem', next.key)],
      [2_500, put('fullchain-2.pem', next.certificate)],
      [500, append('fullchain-2.pem', authority.intermediate.certificate)],
      [500, () => relink('privkey-2.pem', 'privkey.pem')],
      [200, () => relink('fullchain-2.pem', 'fullchain.pem')],
    ],
  },
  {
    name: 'easy-rsa: no files, then a key alone, then the certificate',
    next: () => withNewKey,
    steps: (next) => [
      [0, move('tls.crt', 'renewed.crt')],
      [0, move('tls.key', 'renewed.key')],
      [700, put('tls.key', next.key)],
      [1_900, put('tls.crt', next.certificate)],
      [500, append('tls.crt', authority.intermediate.certificate)],
    ],
  },
  {
    name: 'openssl req: the key, then the certificate by redirects',
    next: () => withNewKey,
    steps: (next) => [
      [0, put('tls.key', next.key)],
      [5_000, put('tls.crt', '')],
      [400, append('tls.crt', next.certificate)],
      [6_000, append('tls.crt', authority.intermediate.certificate)],
    ],
  },
  {
    name: 'openssl pkcs12 with passwords typed, into the files in use, with the same key',
    next: () => withSameKey,
    steps: (next) => [
      [0, put('tls.crt', next.certificate)],
      [6_000, append('tls.crt', authority.intermediate.certificate)],
      [6_000, put('tls.key', next.key)],
    ],
  },
  {
    name: 'openssl pkcs12 with passwords typed, into the files in use, with a new key',
    next: () => withNewKey,
    steps: (next) => [
      [0, put('tls.crt', next.certificate)],
      [6_000, append('tls.crt', authority.intermediate.certificate)],
      [6_000, put('tls.key', '')],
      [300, append('tls.key', next.key)],
    ],
  },
  {
    name: 'the guide: to new names, which are then moved',
    next: () => withNewKey,
    steps: (next) => [
      [0, put('new.crt', next.certificate)],
      [6_000, append('new.crt', authority.intermediate.certificate)],
      [6_000, put('new.key', next.key)],
      [100, move('new.crt', 'tls.crt')],
      [100, move('new.key', 'tls.key')],
    ],
  },
];

describe('A renewal of the certificate files, at a server that knows the root alone', () => {
  /** Where the first write falls between two readings of the files, which are 2 s apart. */
  const OFFSETS = soakOr([0, 300, 700, 1_100, 1_500, 1_900], [300, 1_500]);

  it.each(WRITERS)('loses no call, whichever step is read: $name', async (writer) => {
    const { certificate = 'tls.crt', key = 'tls.key', steps, next } = writer;
    for (const offset of OFFSETS) {
      await (writer.before ?? (() => put('tls.crt', whole(first))().then(put('tls.key', first.key))))();
      await openFiles(certificate, key);
      /** Lets the time pass, with a call on a new connection each half second. */
      const pass = async (ms: number) => {
        for (let left = ms; left > 0; left -= 500) {
          await clock.advance(Math.min(left, 500));
          await call();
        }
      };
      await pass(2_000 + offset);
      for (const [pauseMs, write] of steps(next())) {
        await pass(pauseMs);
        await write();
      }
      await pass(10_000);
      expect([inUse(), faults()]).toEqual(['CN=next', []]);
      await identity.close();
    }
    expect(new Set(server.subjects)).toEqual(new Set(['first', 'next']));
  });
});

describe('A certificate file with fewer certificates of authorities than the one in use', () => {
  const MISSING = expect.stringMatching(
    /^the file \S+tls\.crt lacks the certificate of the issuer "CN=Client Intermediate"\. .*after 10 minutes/,
  );
  const WARNING = expect.stringMatching(/^warn: tls\.certificate: .*"CN=Client Intermediate"/);
  const start = async (certificate = whole(first)) => {
    await put('tls.crt', certificate)();
    await put('tls.key', first.key)();
    return openFiles('tls.crt');
  };
  const shorten = put.bind(undefined, 'tls.crt');

  it('stays out of use for 10 minutes, also after reload(), and shows as a fault; then it is used, with a warning', async () => {
    await start();
    await shorten(withSameKey.certificate)();
    await clock.advance(4_000);
    expect([inUse(), faults()]).toEqual(['CN=first', [expect.objectContaining({ message: MISSING })]]);
    expect([await identity.reload(), inUse()]).toEqual([false, 'CN=first']);
    await clock.advance(590_000);
    expect(inUse()).toBe('CN=first');
    await clock.advance(12_000);
    expect([inUse(), identity.status.lastReloadFault]).toEqual(['CN=next', undefined]);
    expect(lines).toEqual([
      expect.stringMatching(/^error: .*not usable; the one before stays in use:\n {2}- tls\.certificate/),
      WARNING,
      expect.stringMatching(/^log: A new client identity is in use: "CN=next"/),
    ]);
  });

  it('is counted anew if it changes within the 10 minutes', async () => {
    await start();
    await shorten(withSameKey.certificate)();
    await clock.advance(400_000);
    await shorten(withSameKey.certificate + authority.root.certificate)();
    await clock.advance(400_000);
    expect(inUse()).toBe('CN=first');
  });

  it.each([
    ['surely', REFUSED],
    [
      'perhaps',
      new ExchangeFault({ kind: 'reset', phase: 'connecting', certificateVerdict: 'perhaps-refused' }),
    ],
  ])('is used as soon as a server %s refuses the certificate in use', async (_, fault) => {
    await start();
    const { certificate } = identity;
    await shorten(withSameKey.certificate)();
    await clock.advance(4_000);
    expect(await identity.findOther(certificate, { fault }, 'api')).toBe(true);
    expect([inUse(), lines.at(-2)]).toEqual(['CN=next', WARNING]);
  });

  it('is used as soon as the certificate in use has expired', async () => {
    const ending = await authority.client('ending', {
      keys: first.keys,
      notAfter: new Date(clock.now() + 60_000),
    });
    await start(whole(ending));
    await shorten(withSameKey.certificate)();
    await clock.advance(50_000);
    expect(inUse()).toBe('CN=ending');
    await clock.advance(15_000);
    expect(inUse()).toBe('CN=next');
  });

  it('is noticed if two of three certificates are there, and not if an authority has changed the name of its intermediate', async () => {
    const [other, issuing] = await Promise.all([
      issue('Other Intermediate', { ca: true, issuer: authority.root }),
      issue('Issuing', { ca: true, issuer: authority.intermediate }),
    ]);
    const [long, renamed] = await Promise.all([
      issue('long', { issuer: issuing, keys: first.keys }),
      issue('renamed', { issuer: other, keys: first.keys }),
    ]);
    const above = issuing.certificate + authority.intermediate.certificate;
    await start(long.certificate + above);
    await shorten(long.certificate + issuing.certificate)();
    await clock.advance(4_000);
    expect(faults()).toEqual([expect.objectContaining({ message: MISSING })]);
    await shorten(renamed.certificate + other.certificate + authority.root.certificate)();
    await clock.advance(4_000);
    expect([inUse(), faults()]).toEqual(['CN=renamed', []]);
  });

  it('is used at once if it has as many, with others that do not belong to them, in whichever order', async () => {
    const stranger = await issue('Stranger', { ca: true });
    await start(first.certificate + stranger.certificate + authority.intermediate.certificate);
    await shorten(withSameKey.certificate + authority.root.certificate)();
    await clock.advance(4_000);
    expect(inUse()).toBe('CN=first');
    await shorten(
      withSameKey.certificate + authority.root.certificate + authority.intermediate.certificate,
    )();
    await clock.advance(4_000);
    expect(inUse()).toBe('CN=next');
  });

  it('is used at once if a tls function returns it, which returns whole values', async () => {
    let certificate = whole(first);
    const source = () => ({ certificate, privateKey: first.key, chain: service.chain });
    await open({ source, reload: true, locate });
    certificate = withSameKey.certificate;
    expect([await identity.reload(), inUse()]).toEqual([true, 'CN=next']);
    expect(lines).toEqual([expect.stringMatching(/^log: /)]);
  });
});
