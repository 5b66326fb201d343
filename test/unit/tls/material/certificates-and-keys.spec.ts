import { beforeAll, afterAll, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { createCipheriv, createHash, createPrivateKey, pbkdf2Sync, X509Certificate } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PemValue } from '../../../../lib/config/secret.js';
import { type TlsIdentityPems } from '../../../../lib/config/tls.options.js';
import { type ConfigurationFault } from '../../../../lib/errors/index.js';
import {
  createAuthority,
  issue,
  pem,
  request,
  type Authority,
  type Issued,
  withoutPaths,
} from '../../../helpers/certificates.js';
import { loadIdentity, locate, tlsSettings } from '../tls-settings.js';

let authority: Authority;
let app: Issued;
let other: Issued;
let folder: string;
const DAY_MS = 86_400_000;
const WEAK = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  modulusLength: 512,
  publicExponent: new Uint8Array([1, 0, 1]),
};

beforeAll(async () => {
  authority = await createAuthority();
  [app, other] = await Promise.all([authority.client('app'), authority.client('other')]);
  folder = await mkdtemp(join(tmpdir(), 'tls-'));
});
afterAll(() => rm(folder, { recursive: true }));

const load = (pems: TlsIdentityPems) => loadIdentity(tlsSettings(pems));

async function faultsOf(pems: TlsIdentityPems): Promise<ConfigurationFault[]> {
  const { identity, faults } = await load(pems);
  expect(identity).toBeUndefined();
  // No message quotes what the PEMs hold.
  for (const { message } of faults) {
    expect(withoutPaths(message, folder)).not.toMatch(/[A-Za-z0-9+/]{40}/);
  }
  return faults;
}

async function onlyFault(pems: TlsIdentityPems): Promise<ConfigurationFault> {
  const faults = await faultsOf(pems);
  expect(faults).toHaveLength(1);
  return faults[0];
}

async function file(name: string, content: string | Buffer): Promise<{ file: string }> {
  const path = join(folder, name);
  await writeFile(path, content);
  return { file: path };
}

const der = (value: string) => new X509Certificate(value).raw;
const good = () => ({ certificate: app.certificate, privateKey: app.key, chain: authority.chain });
const encrypted = (passphrase: string) =>
  createPrivateKey(app.key)
    .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase })
    .toString();

describe('Forms that are accepted', () => {
  const forms: [string, (text: string) => string | Buffer][] = [
    ['plain text', (text) => text],
    ['escaped newlines', (text) => text.replaceAll('\n', '\\n')],
    ['escaped CRLF', (text) => text.replaceAll('\n', '\\r\\n')],
    ['CRLF', (text) => text.replaceAll('\n', '\r\n')],
    ['a byte order mark', (text) => `\uFEFF${text}`],
    ['text around the blocks', (text) => `subject=CN = app\nissuer=x\n${text}\nthe end\n`],
    ['text in Latin-1 before it', (text) => Buffer.from(`ÿ\n${text}`, 'latin1')],
    ['indented', (text) => text.replaceAll(/^/gm, '    ')],
    ['quotes around it', (text) => `"${text.replaceAll('\n', '\\n')}"`],
    ['base64', (text) => Buffer.from(text).toString('base64')],
    ['base64 in quotes', (text) => `'${Buffer.from(text).toString('base64')}'`],
    [
      'base64 in lines',
      (text) =>
        Buffer.from(text)
          .toString('base64')
          .replace(/(.{76})/g, '$1\n'),
    ],
    ['base64 after a byte order mark', (text) => `\uFEFF${Buffer.from(text).toString('base64')}`],
    ['base64 of CRLF', (text) => Buffer.from(text.replaceAll('\n', '\r\n')).toString('base64')],
  ];
  it.each(forms)('%s, as a value and in a file', async (_name, form) => {
    const values: Record<string, PemValue> = {};
    const files: Record<string, PemValue> = {};
    for (const [key, text] of Object.entries(good())) {
      const formed = form(text);
      files[key] = await file(`${key}.pem`, formed);
      values[key] = typeof formed === 'string' ? formed : files[key];
    }
    for (const pems of [values, files]) {
      const { identity, faults } = await load(pems);
      expect(faults).toEqual([]);
      expect(identity?.certificate?.subject).toBe('CN=app');
    }
  });

  it('accepts the application certificate with the chain after it', async () => {
    const { identity, certificate } = await load({
      ...good(),
      certificate: app.certificate + authority.chain,
    });
    expect(identity).toBeDefined();
    expect(certificate?.subject).toBe('CN=app');
    expect(certificate?.fingerprint256).toBe(new X509Certificate(app.certificate).fingerprint256);
  });

  it('accepts certificate, chain and key in one file that both options name, in any order', async () => {
    const sec1 = createPrivateKey(app.key).export({ type: 'sec1', format: 'pem' }).toString();
    const parameters = pem('EC PARAMETERS', Buffer.from('06082a8648ce3d030107', 'hex'));
    for (const text of [
      app.certificate + authority.chain + app.key,
      app.key + app.certificate + authority.chain,
      parameters + sec1 + app.certificate + authority.chain,
    ]) {
      const both = await file('both.pem', text);
      for (const each of [text, both]) {
        const { identity, faults } = await load({ ...good(), certificate: each, privateKey: each });
        expect(faults).toEqual([]);
        expect(identity?.sent.map(({ subject }) => subject)).toEqual([
          'CN=app',
          'CN=Service Intermediate',
          'CN=Service Root',
        ]);
      }
    }
  });

  it('accepts an EC key with its parameters before it, in SEC1 form', async () => {
    const sec1 = createPrivateKey(app.key).export({ type: 'sec1', format: 'pem' }).toString();
    const parameters = pem('EC PARAMETERS', Buffer.from('06082a8648ce3d030107', 'hex'));
    expect((await load({ ...good(), privateKey: parameters + sec1 })).faults).toEqual([]);
  });

  it('accepts encrypted keys, new and traditional, with a passphrase from a file with its newline', async () => {
    const traditional = createPrivateKey(app.key)
      .export({ type: 'sec1', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'open sesame' })
      .toString();
    const passphrase = await file('passphrase', 'open sesame\n');
    for (const privateKey of [encrypted('open sesame'), traditional, traditional.replaceAll('\n', '\\n')]) {
      expect((await load({ ...good(), privateKey, passphrase })).faults).toEqual([]);
      expect((await load({ ...good(), privateKey, passphrase: 'open sesame' })).faults).toEqual([]);
    }
  });

  it('works without any certificate, and with a chain alone', async () => {
    expect((await load({})).identity?.certificate).toBeUndefined();
    expect((await load({ chain: authority.intermediate.certificate })).identity).toBeDefined();
  });
});

describe('Files', () => {
  it('names a missing file, a directory and an empty file by option, variable and path', async () => {
    const directory = join(folder, 'directory');
    await mkdir(directory);
    const missing = join(folder, 'nowhere.pem');
    const faults = await faultsOf({
      certificate: { file: missing },
      privateKey: { file: directory },
      chain: await file('empty.pem', ' \n'),
    });
    expect(faults).toEqual([
      {
        option: 'tls.certificate',
        variable: 'SERVICE_TLS_CERTIFICATE_FILE',
        message: expect.stringMatching(`${missing} cannot be read \\(ENOENT\\)`),
      },
      {
        option: 'tls.privateKey',
        variable: 'SERVICE_TLS_PRIVATE_KEY_FILE',
        message: expect.stringMatching(`${directory} cannot be read \\(not a regular file\\)`),
      },
      {
        option: 'tls.chain',
        variable: 'SERVICE_TLS_CHAIN_FILE',
        message: expect.stringMatching(/empty\.pem is empty/),
      },
    ]);
  });

  it('names a file that may not be read', async () => {
    const loop = join(folder, 'loop');
    await symlink(loop, loop);
    expect((await onlyFault({ ...good(), chain: { file: loop } })).message).toMatch(
      /loop cannot be read \(ELOOP\)/,
    );
    if (process.getuid?.() === 0) return;
    const locked = await file('locked.pem', app.key);
    await chmod(locked.file, 0o000);
    expect((await onlyFault({ ...good(), privateKey: locked })).message).toMatch(/cannot be read \(EACCES\)/);
  });

  const ifPosix = process.platform === 'win32' ? it.skip : it;
  ifPosix('waits for no pipe or device, and reads no file of any length', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const path of [pipe, '/dev/zero']) {
      const { message } = await onlyFault({ ...good(), privateKey: { file: path } });
      expect(message).toMatch(/cannot be read \(not a regular file\)/);
    }
    const large = await file('large.pem', authority.chain + ' '.repeat(1024 * 1024));
    expect((await onlyFault({ ...good(), chain: large })).message).toMatch(/larger than 1 MiB/);
  });

  it('takes bytes from plain JavaScript for no file', async () => {
    const certificate = Buffer.from(app.certificate) as unknown as PemValue;
    expect((await onlyFault({ ...good(), certificate })).message).toBe('is neither text nor { file: path }.');
  });

  it('names a missing passphrase file, whether the key needs it or not', async () => {
    const passphrase = { file: join(folder, 'no-passphrase') };
    expect((await onlyFault({ ...good(), passphrase })).option).toBe('tls.passphrase');
    expect((await onlyFault({ ...good(), privateKey: encrypted('x'), passphrase })).message).toMatch(
      /cannot be read/,
    );
  });

  it('names a missing passphrase file beside the faults of the key', async () => {
    const passphrase = { file: join(folder, 'no-passphrase') };
    const optionsOf = async (pems: TlsIdentityPems) => (await faultsOf(pems)).map(({ option }) => option);
    for (const privateKey of ['no PEM', { file: join(folder, 'no-key') }, app.key + other.key]) {
      expect(await optionsOf({ ...good(), privateKey, passphrase })).toEqual([
        'tls.privateKey',
        'tls.passphrase',
      ]);
    }
    expect(await optionsOf({ passphrase })).toEqual(['tls.passphrase']);
  });

  it('sees a path where PEM text belongs', async () => {
    const { message, variable } = await onlyFault({ ...good(), privateKey: '/run/secrets/key.pem' });
    expect(message).toMatch(
      /looks like a path: give a file as tls\.privateKey: \{ file: '\.\.\.' \}, or in a variable whose name ends in _FILE/,
    );
    expect(variable).toBe('SERVICE_TLS_PRIVATE_KEY');
  });
});

describe('What belongs elsewhere', () => {
  const pkcs8 = (format: object) => createPrivateKey(app.key).export({ type: 'pkcs8', ...format } as never);
  const NO_PEM = /is no PEM .*convert it \(https:\S+\/certificates\.md#other-formats\)\.$/;
  const CSR = /holds a certificate request \(CSR\) in place of the certificate that was issued for it/;
  const cases: [string, keyof TlsIdentityPems, () => string | Buffer | Promise<string>, RegExp][] = [
    [
      'OpenSSH key',
      'privateKey',
      () => pem('OPENSSH PRIVATE KEY', Buffer.alloc(120)),
      /OpenSSH format \(ssh-/,
    ],
    ['certificate request', 'certificate', () => request('app', app.keys), CSR],
    ['certificate request as key', 'privateKey', () => request('app', app.keys), CSR],
    [
      'certificate request of an old label',
      'certificate',
      async () => (await request('app', app.keys)).replaceAll('CERTIFICATE', 'NEW CERTIFICATE'),
      CSR,
    ],
    [
      'public key',
      'privateKey',
      () => pem('PUBLIC KEY', Buffer.alloc(80)),
      /PEM block of another kind, and no private/,
    ],
    [
      'PKCS#7',
      'chain',
      () => pem('PKCS7', Buffer.alloc(80)),
      /PEM block of another kind\. Only certificates/,
    ],
    ['DER certificate', 'certificate', () => der(app.certificate), NO_PEM],
    ['DER chain in base64', 'chain', () => der(authority.root.certificate).toString('base64'), NO_PEM],
    ['DER key', 'privateKey', () => pkcs8({ format: 'der' }), NO_PEM],
    ['UTF-16', 'chain', () => Buffer.from(`\uFEFF${authority.chain}`, 'utf16le'), NO_PEM],
    [
      'PKCS#12',
      'certificate',
      () =>
        Buffer.concat([
          Buffer.from('308203e8020103308203ae06092a864886f70d010701', 'hex'),
          Buffer.alloc(978),
        ]),
      NO_PEM,
    ],
  ];
  it.each(cases)('%s', async (_name, key, content, expected) => {
    const { option, message } = await onlyFault({ ...good(), [key]: await file('foreign', await content()) });
    expect(option).toBe(`tls.${key}`);
    expect(message).toMatch(expected);
  });

  it('nothing of any of it is shown, whatever is swapped', async () => {
    const texts = [
      app.certificate,
      app.key,
      encrypted('open-sesame'),
      authority.chain,
      pem('OPENSSH PRIVATE KEY', Buffer.alloc(120, 7)),
      app.key.replaceAll('\n', ' '),
      app.key.replaceAll('\n', '').replace('PRIVATE KEY-----', 'PRIVATE KEY '),
      app.key.slice(30, -30),
      Buffer.from(app.key).toString('base64'),
      'open-sesame',
    ];
    const secrets = texts.flatMap((text) => text.match(/[\w+/=-]{24,}|open-sesame/g) ?? []);
    const keys = ['certificate', 'privateKey', 'chain', 'passphrase'] as const;
    const asFiles = await Promise.all(texts.map((text, index) => file(`swapped-${index}`, text)));
    for (const values of [texts, asFiles, texts.map((text) => ({ file: text }))]) {
      for (const key of keys)
        for (const value of values) {
          const { faults } = await load({ ...good(), [key]: value });
          const shown = JSON.stringify(faults);
          for (const secret of secrets) expect(shown).not.toContain(secret);
        }
    }
  });
});

describe('Pairs', () => {
  it('key of another certificate', async () => {
    const { option, message } = await onlyFault({ ...good(), privateKey: other.key });
    expect(option).toBe('tls.privateKey');
    expect(message).toMatch(/key of another certificate, not of "CN=app" \(SHA-256 /);
  });

  it("chain's certificate first", async () => {
    const { option, message } = await onlyFault({
      ...good(),
      certificate: authority.chain + app.certificate,
    });
    expect(option).toBe('tls.certificate');
    expect(message).toMatch(
      /begins with a certificate of the chain, "CN=Service Intermediate".*"CN=app".*at place 3\. Put the application certificate first/,
    );
  });

  it('certificate and key swapped', async () => {
    const faults = await faultsOf({ ...good(), certificate: app.key, privateKey: app.certificate });
    expect(faults).toMatchObject([
      {
        option: 'tls.certificate',
        message: expect.stringMatching(/holds a private key\. Only certificates/),
      },
      { option: 'tls.privateKey', message: expect.stringMatching(/holds a certificate, and no private key/) },
    ]);
  });

  it.each([
    ['swapped', () => app.certificate],
    ['in both places', () => authority.chain],
  ])('the chain in place of the certificate, %s', async (_, chain) => {
    const given = { ...good(), certificate: authority.chain, chain: chain() };
    expect((await onlyFault(given)).message).toMatch(
      /certificate authority's certificate, "CN=Service Intermediate".*chain belongs in tls\.chain/,
    );
  });

  it('the same text for both, which has only one of the two', async () => {
    const withKey = await onlyFault({ ...good(), certificate: app.key });
    expect([withKey.option, withKey.message]).toEqual(['tls.certificate', 'the value holds no certificate.']);
    const withCertificate = await onlyFault({ ...good(), privateKey: app.certificate });
    expect(withCertificate.option).toBe('tls.privateKey');
    expect(withCertificate.message).toMatch(/holds a certificate, and no private key/);
  });

  it('certificate without key, key without certificate: at the option that is missing', async () => {
    expect(await onlyFault({ certificate: app.certificate })).toEqual({
      option: 'tls.privateKey',
      variable: 'SERVICE_TLS_PRIVATE_KEY',
      message: expect.stringMatching(/is missing: tls\.certificate is set.*Set the key,/),
    });
    expect(await onlyFault({ privateKey: await file('key.pem', app.key) })).toEqual({
      option: 'tls.certificate',
      variable: 'SERVICE_TLS_CERTIFICATE',
      message: expect.stringMatching(/is missing: tls\.privateKey is set.*Set the certificate,/),
    });
  });

  it('private key inside the certificate or chain file', async () => {
    const faults = await faultsOf({
      certificate: app.certificate + app.key,
      privateKey: app.key,
      chain: authority.chain + other.key,
    });
    expect(faults.map(({ option }) => option)).toEqual(['tls.certificate', 'tls.chain']);
    for (const { message } of faults)
      expect(message).toMatch(/holds a private key\. Only certificates belong there .*: take the rest out/);
    const both = app.certificate + app.key;
    const shared = await onlyFault({ certificate: both, privateKey: both, chain: both });
    expect(shared.option).toBe('tls.chain');
    const openssh = pem('OPENSSH PRIVATE KEY', Buffer.alloc(120));
    for (const [certificate, privateKey] of [
      [app.certificate + openssh, app.key],
      [both + openssh, both + openssh],
    ]) {
      const { option, message } = await onlyFault({ ...good(), certificate, privateKey });
      expect(option).toBe('tls.certificate');
      expect(message).toMatch(/holds a private key in OpenSSH format/);
    }
  });

  it('several private keys', async () => {
    expect((await onlyFault({ ...good(), privateKey: app.key + other.key })).message).toMatch(
      /holds 2 private keys/,
    );
  });
});

describe('Encrypted keys', () => {
  it('without a passphrase', async () => {
    const { option, message } = await onlyFault({ ...good(), privateKey: encrypted('x') });
    expect(option).toBe('tls.privateKey');
    expect(message).toMatch(
      /encrypted key and there is no passphrase\. Set tls\.passphrase \(SERVICE_TLS_PASSPHRASE\), or decrypt the key/,
    );
  });

  it('with a wrong passphrase', async () => {
    const { option, variable, message } = await onlyFault({
      ...good(),
      privateKey: encrypted('x'),
      passphrase: 'wrong one',
    });
    expect([option, variable]).toEqual(['tls.passphrase', 'SERVICE_TLS_PASSPHRASE']);
    expect(message).toMatch(/does not open the private key/);
    expect(message).not.toMatch('wrong one');
  });

  it('the passphrase of a file loses one newline at its end, that of an option none', async () => {
    const privateKey = encrypted('x\n');
    expect((await load({ ...good(), privateKey, passphrase: 'x\n' })).faults).toEqual([]);
    const passphrase = await file('newlines', 'x\n\r\n');
    expect((await load({ ...good(), privateKey, passphrase })).faults).toEqual([]);
    expect((await onlyFault({ ...good(), privateKey, passphrase: 'x' })).option).toBe('tls.passphrase');
  });

  it.each([['AES-256-CBC'], ['DES-CBC']])(
    'in traditional form, with %s, that holds nonsense',
    async (algorithm) => {
      // As OpenSSL derives it: MD5 over the passphrase and the first 8 bytes of the IV, again and again.
      const iv = Buffer.alloc(algorithm.startsWith('AES') ? 16 : 8, 3);
      const hash = (before: Buffer) =>
        createHash('md5')
          .update(Buffer.concat([before, Buffer.from('x'), iv.subarray(0, 8)]))
          .digest();
      const first = hash(Buffer.alloc(0));
      const key = Buffer.concat([first, hash(first)]).subarray(0, algorithm.startsWith('AES') ? 32 : 24);
      // OpenSSL 3 has DES-CBC in its legacy provider only.
      const cipher = createCipheriv(algorithm === 'DES-CBC' ? 'DES-EDE3-CBC' : algorithm, key, iv);
      const body = Buffer.concat([cipher.update(Buffer.alloc(100, 7)), cipher.final()]);
      const headers = `Proc-Type: 4,ENCRYPTED\nDEK-Info: ${algorithm},${iv.toString('hex').toUpperCase()}\n\n`;
      const privateKey = pem('EC PRIVATE KEY', body).replace('-----\n', `-----\n${headers}`);
      const fault = await onlyFault({ ...good(), privateKey, passphrase: 'x' });
      expect(fault.option).toBe('tls.passphrase');
      expect(fault.message).toMatch(
        /does not open the private key: .*no longer reads its cipher .*openssl pkcs8/,
      );
    },
  );

  it('of a function: the option is named alone', async () => {
    const source = () => ({ ...good(), privateKey: encrypted('x') });
    const { faults } = await loadIdentity({ source, reload: false, locate });
    expect(faults[0]?.message).toMatch(/there is no passphrase\. Set tls\.passphrase, or decrypt the key/);
  });

  it('with a wrong passphrase that happens to decrypt to nonsense', async () => {
    const der = Buffer.from(encrypted('x').replace(/-----[^-]+-----/g, ''), 'base64');
    const after = (mark: string) => der.indexOf(Buffer.from(mark, 'hex')) + mark.length / 2;
    // RFC 8018: PBKDF2 with its salt, AES-256-CBC with its IV; the ciphertext comes last.
    const salt = after('06092a864886f70d01050c301c0408');
    const iv = after('060960864801650304012a0410');
    const ciphertext = iv + 16 + 3;
    const key = pbkdf2Sync('x', der.subarray(salt, salt + 8), 2048, 32, 'sha256');
    const cipher = createCipheriv('aes-256-cbc', key, der.subarray(iv, iv + 16));
    const nonsense = Buffer.alloc(der.length - ciphertext - 1, 7);
    Buffer.concat([cipher.update(nonsense), cipher.final()]).copy(der, ciphertext);
    const fault = await onlyFault({
      ...good(),
      privateKey: pem('ENCRYPTED PRIVATE KEY', der),
      passphrase: 'x',
    });
    expect(fault.option).toBe('tls.passphrase');
    expect(fault.message).toMatch(/does not open the private key: it is wrong, the key is damaged/);
  });
});

describe('A part that would be lost', () => {
  const relabelled = (text: string, label: string) => text.replaceAll('CERTIFICATE', label);
  const rows: [string, () => string | Promise<string>, RegExp][] = [
    ['a cut boundary at the end', () => '-----BEGIN CERTIFICATE---', /is truncated/],
    ['the beginning of one', () => '-----BEGIN', /is truncated/],
    ['boundaries with a dash too few', () => other.certificate.replaceAll('-----', '----'), /is truncated/],
    ['boundaries in small letters', () => relabelled(other.certificate, 'x').toLowerCase(), /is truncated/],
    [
      'a misspelt label',
      () => relabelled(other.certificate, 'CERTFICATE'),
      /holds a PEM block of another kind\. Only certificates belong there \(-----BEGIN CERTIFICATE-----\)/,
    ],
    ['a label in mixed case', () => relabelled(other.certificate, 'Certificate'), /block of another kind/],
    ['a certificate request', () => request('app', app.keys), /certificate request \(CSR\)/],
    ['a revocation list', () => pem('X509 CRL', Buffer.alloc(80)), /block of another kind/],
  ];
  it.each(rows)('%s, behind or before a good certificate', async (_name, part, expected) => {
    const lost = await part();
    const message = expect.stringMatching(expected);
    for (const chain of [`${authority.chain}${lost}\n`, `${lost}\n${authority.chain}`]) {
      expect(await onlyFault({ ...good(), chain })).toMatchObject({ option: 'tls.chain', message });
    }
    const certificate = `${app.certificate}${lost}\n`;
    expect(await onlyFault({ ...good(), certificate })).toMatchObject({ option: 'tls.certificate', message });
  });

  it('but not the attributes that openssl pkcs12 writes', async () => {
    const attributes = 'Bag Attributes\n    localKeyID: 01 02\nKey Attributes: <No Attributes>\n';
    expect((await load({ ...good(), privateKey: attributes + app.key })).faults).toEqual([]);
    const chain = `# --- the chain ---\n${attributes}subject=CN = x\n${authority.chain}`;
    expect((await load({ ...good(), chain })).faults).toEqual([]);
  });

  it('says how a .env file holds several lines', async () => {
    const [chain] = authority.chain.split('\n');
    expect((await onlyFault({ ...good(), chain })).message).toMatch(
      /truncated.*In a \.env file, put it in quotes or write \\n for the line breaks/,
    );
  });
});

describe('Garbage', () => {
  const cut = (text: string) => text.slice(0, text.length - 60);
  const rows: [string, () => string, RegExp][] = [
    ['garbage', () => 'this is no chain', /is no PEM/],
    ['truncated', () => cut(authority.chain), /is truncated/],
    ['begun too late', () => authority.chain.slice(40), /is truncated/],
    ['empty', () => '', /is empty/],
    [
      'a certificate of nonsense',
      () => pem('CERTIFICATE', Buffer.alloc(100, 7)),
      /holds no readable certificate in its PEM block 1: it is damaged or cut/,
    ],
    [
      'a second certificate of nonsense',
      () => authority.root.certificate + pem('CERTIFICATE', Buffer.alloc(9)),
      /PEM block 2/,
    ],
    ['no certificate', () => pem('DH PARAMETERS', Buffer.alloc(20)), /PEM block of another kind/],
  ];
  it.each(rows)('%s: chain and certificate', async (_name, content, expected) => {
    for (const key of ['chain', 'certificate'] as const) {
      const faults = await faultsOf({ ...good(), [key]: content() });
      expect(faults[0]).toMatchObject({ option: `tls.${key}`, message: expect.stringMatching(expected) });
    }
  });

  it.each([
    ['a word', 'nonsense'],
    ['a path that is too long', `/${'a'.repeat(600)}.pem`],
  ])('%s is not taken for a path', async (_, certificate) => {
    const { message } = await onlyFault({ ...good(), certificate });
    expect(message).toMatch(/ is no PEM .*, nor the base64 of one: convert it/);
  });

  it('PEM blocks without a private key', async () => {
    const privateKey = pem('EC PARAMETERS', Buffer.from('06082a8648ce3d030107', 'hex'));
    const { option, message } = await onlyFault({ ...good(), privateKey });
    expect([option, message]).toEqual([
      'tls.privateKey',
      expect.stringMatching(/holds a PEM block of another kind, and no private key/),
    ]);
  });

  it('a damaged private key', async () => {
    const fault = await onlyFault({ ...good(), privateKey: pem('PRIVATE KEY', Buffer.alloc(100, 7)) });
    expect(fault.message).toMatch(/private key that cannot be read/);
    expect((await onlyFault({ ...good(), privateKey: cut(app.key) })).message).toMatch(/is truncated/);
    expect((await onlyFault({ ...good(), privateKey: 'nonsense' })).message).toMatch(/is no PEM/);
  });

  it('a function that fails or returns nonsense', async () => {
    const ask = async (source: () => unknown) =>
      (await loadIdentity({ source: source as never, reload: true, locate })).faults;
    const failing = await ask(() =>
      Promise.reject(Object.assign(new Error('token s.123 refused'), { code: 'EVAULT' })),
    );
    expect(failing).toEqual([
      { option: 'tls', message: expect.stringMatching(/failed \(EVAULT: token s\.123 refused\)/) },
    ]);
    expect((await ask(() => undefined))[0].message).toMatch(/returned no object/);
    expect((await ask(() => ({ chain: 7 })))[0]).toMatchObject({ option: 'tls.chain' });
    expect(await ask(() => good())).toEqual([]);
  });

  it('a function may return files; what is neither is a fault of its own', async () => {
    const load = async (answer: object) =>
      (await loadIdentity({ source: () => answer, reload: true, locate })).faults;
    const files = {
      certificate: await file('function.crt', app.certificate),
      privateKey: await file('function.key', app.key),
      chain: null,
    };
    expect(await load(files)).toEqual([]);
    for (const privateKey of [7, true, { path: 'x' }, () => 'x']) {
      expect(await load({ ...files, privateKey })).toEqual([
        { option: 'tls.privateKey', message: expect.stringMatching(/neither text nor \{ file/) },
      ]);
    }
  });

  it.each<[unknown, string]>([
    [new RangeError('out of range\nof secret'), 'RangeError: out of range'],
    [new Error('refused for hvs.CAESIJ7kq4b2m9x0'), 'unknown reason'],
    [Object.assign(new Error('no such item'), { code: 'ENOITEM' }), 'ENOITEM: no such item'],
    [new Error('https://user:p4ssw0rd@vault.example/v1'), 'unknown reason'],
    [new Error('key -----BEGIN PRIVATE KEY-----'), '[not shown: it contains a secret or a part of one]'],
    [{ code: 'X'.repeat(200) }, `${'X'.repeat(160)}…`],
    ['secret', 'unknown reason'],
    [undefined, 'unknown reason'],
  ])(
    'a function that throws %p: its class, code and first line are shown, without secrets',
    async (thrown, reason) => {
      const source = async (): Promise<never> => {
        throw thrown;
      };
      const { faults } = await loadIdentity({ source, reload: true, locate });
      expect(faults).toEqual([
        { option: 'tls', message: `the function failed (${reason}). Look at its vault or store.` },
      ]);
    },
  );

  it('a key too weak for OpenSSL is named, not thrown', async () => {
    const weak = await issue('weak', { algorithm: WEAK });
    const fault = await onlyFault({ certificate: weak.certificate, privateKey: weak.key });
    expect(fault.message).toMatch(/OpenSSL does not accept the certificate and key \(ERR_/);
  });
});

describe('Dates', () => {
  const at = (days: number) => new Date(Date.now() + days * DAY_MS);

  it('expired and not yet valid: errors with date and remedy', async () => {
    const expired = await authority.client('old', { notBefore: at(-20), notAfter: at(-2) });
    const message = (await onlyFault({ certificate: expired.certificate, privateKey: expired.key })).message;
    expect(message).toMatch(`expired on ${at(-2).toISOString().slice(0, 10)}`);
    expect(message).toMatch(/Check the clock, or put what the developer portal has now in its place/);
    const early = await authority.client('new', { notBefore: at(2), notAfter: at(9) });
    expect((await onlyFault({ certificate: early.certificate, privateKey: early.key })).message).toMatch(
      /is not valid before/,
    );
  });

  it('reports all faults of an identity at once', async () => {
    const expired = await authority.client('old', { notBefore: at(-20), notAfter: at(-2) });
    const faults = await faultsOf({
      certificate: expired.certificate,
      privateKey: other.key,
      chain: 'nonsense',
    });
    expect(faults.map(({ option }) => option).sort()).toEqual([
      'tls.certificate',
      'tls.chain',
      'tls.privateKey',
    ]);
  });
});
