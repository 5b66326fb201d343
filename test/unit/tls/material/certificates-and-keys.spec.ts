import { beforeAll, afterAll, describe, expect, it } from '@jest/globals';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  createCipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  pbkdf2Sync,
  X509Certificate,
} from 'node:crypto';
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
    ['twice escaped newlines', (text) => text.replaceAll('\n', '\\\\n')],
    ['twice escaped CRLF', (text) => text.replaceAll('\n', '\\\\r\\\\n')],
    [
      'base64 with twice escaped newlines',
      (text) =>
        Buffer.from(text)
          .toString('base64')
          .replace(/(.{76})/g, '$1\\\\n'),
    ],
    ['CRLF', (text) => text.replaceAll('\n', '\r\n')],
    ['a byte order mark', (text) => `\uFEFF${text}`],
    ['UTF-16 with a byte order mark', (text) => Buffer.from(`\uFEFF${text}`, 'utf16le')],
    ['text around the blocks', (text) => `subject=CN = app\nissuer=x\n${text}\nthe end\n`],
    ['text in Latin-1 before it', (text) => Buffer.from(`ÿ\n${text}`, 'latin1')],
    ['newlines lost to spaces', (text) => text.replaceAll('\n', ' ')],
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
        message: expect.stringMatching(`${missing} does not exist \\(ENOENT\\)\\. Check the path`),
      },
      {
        option: 'tls.privateKey',
        variable: 'SERVICE_TLS_PRIVATE_KEY_FILE',
        message: expect.stringMatching(`${directory} is a directory`),
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
      /loop cannot be read.*form a loop/,
    );
    if (process.getuid?.() === 0) return;
    const locked = await file('locked.pem', app.key);
    await chmod(locked.file, 0o000);
    expect((await onlyFault({ ...good(), privateKey: locked })).message).toMatch(/cannot be read \(EACCES\)/);
  });

  it('says of a path from the shell or from elsewhere where it was looked for', async () => {
    const home = await onlyFault({ ...good(), chain: { file: '~/chain.pem' } });
    expect(home.message).toMatch(/~\/chain\.pem does not exist.*~ is not expanded here/);
    const relative = await onlyFault({ ...good(), chain: { file: 'nowhere/chain.pem' } });
    expect(relative.message).toContain(`It was looked for at ${join(process.cwd(), 'nowhere/chain.pem')}.`);
  });

  const ifPosix = process.platform === 'win32' ? it.skip : it;
  ifPosix('waits for no pipe or device, and reads no file of any length', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const path of [pipe, '/dev/zero']) {
      const { message } = await onlyFault({ ...good(), privateKey: { file: path } });
      expect(message).toMatch(/is a pipe or a device\. Name a regular file/);
    }
    const large = await file('large.pem', authority.chain + ' '.repeat(1024 * 1024));
    expect((await onlyFault({ ...good(), chain: large })).message).toMatch(/is larger than 1 MiB/);
  });

  it('takes bytes from plain JavaScript for no file', async () => {
    const certificate = Buffer.from(app.certificate) as unknown as PemValue;
    expect((await onlyFault({ ...good(), certificate })).message).toBe('is neither text nor { file: path }.');
  });

  it('names a missing passphrase file, whether the key needs it or not', async () => {
    const passphrase = { file: join(folder, 'no-passphrase') };
    expect((await onlyFault({ ...good(), passphrase })).option).toBe('tls.passphrase');
    expect((await onlyFault({ ...good(), privateKey: encrypted('x'), passphrase })).message).toMatch(
      /does not exist/,
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
      /looks like a path: give a file as tls\.privateKey: \{ file: '\.\.\.' \}, or set SERVICE_TLS_PRIVATE_KEY_FILE/,
    );
    expect(variable).toBe('SERVICE_TLS_PRIVATE_KEY');
  });
});

describe('Foreign formats are named, with the command that converts them', () => {
  const cases: [string, keyof TlsIdentityPems, () => string | Buffer | Promise<string>, RegExp][] = [
    [
      'DER certificate',
      'certificate',
      () => der(app.certificate),
      /certificate in DER.*openssl x509 -inform DER -in \S+foreign -out certificate\.pem/,
    ],
    ['DER chain', 'chain', () => der(authority.root.certificate), /certificate in DER.*-out chain\.pem/],
    [
      'DER key',
      'privateKey',
      () => createPrivateKey(app.key).export({ type: 'pkcs8', format: 'der' }),
      /private key in DER.*openssl pkey -inform DER/,
    ],
    [
      'DER key, SEC1',
      'privateKey',
      () => createPrivateKey(app.key).export({ type: 'sec1', format: 'der' }),
      /private key in DER/,
    ],
    [
      'encrypted DER key',
      'privateKey',
      () =>
        createPrivateKey(app.key).export({
          type: 'pkcs8',
          format: 'der',
          cipher: 'aes-256-cbc',
          passphrase: 'x',
        }),
      /encrypted private key in DER.*openssl pkcs8 -inform DER/,
    ],
    [
      'OpenSSH key',
      'privateKey',
      () => pem('OPENSSH PRIVATE KEY', Buffer.alloc(120)),
      /OpenSSH format.*ssh-keygen -p -m PEM.*openssl pkey/,
    ],
    [
      'certificate request',
      'certificate',
      () => request('app', app.keys),
      /certificate request.*openssl req -in/,
    ],
    [
      'certificate request in DER',
      'certificate',
      async () =>
        Buffer.from(
          (await request('app', app.keys)).replace(/-----[^-]+-----|\s/g, ''),
          'base64',
        ) as unknown as string,
      /certificate request.*openssl req -inform DER/,
    ],
    [
      'public key',
      'privateKey',
      () => pem('PUBLIC KEY', Buffer.alloc(80)),
      /public key, not the private key.*openssl pkey -pubin/,
    ],
    [
      'public key in DER',
      'privateKey',
      () => createPublicKey(app.key).export({ type: 'spki', format: 'der' }),
      /public key.*openssl pkey -pubin -inform DER -in/,
    ],
    [
      'PKCS#7 in DER',
      'chain',
      () => Buffer.concat([Buffer.from('308203e806092a864886f70d010702', 'hex'), Buffer.alloc(989)]),
      /PKCS#7.*openssl pkcs7 -inform DER -print_certs -in \S+ -out chain\.pem/,
    ],
    ['CMS', 'chain', () => pem('CMS', Buffer.alloc(80)), /PKCS#7.*openssl pkcs7 -print_certs -in/],
    [
      'certificate request of an old label',
      'certificate',
      async () => (await request('app', app.keys)).replaceAll('CERTIFICATE', 'NEW CERTIFICATE'),
      /certificate request.*openssl req -in/,
    ],
    ['RSA public key', 'privateKey', () => pem('RSA PUBLIC KEY', Buffer.alloc(80)), /public key, not/],
    ['PKCS#7', 'chain', () => pem('PKCS7', Buffer.alloc(80)), /PKCS#7.*openssl pkcs7 -print_certs/],
  ];
  it.each(cases)('%s', async (_name, key, content, expected) => {
    const { option, message } = await onlyFault({ ...good(), [key]: await file('foreign', await content()) });
    expect(option).toBe(`tls.${key}`);
    expect(message).toMatch(expected);
  });

  it('PKCS#12, also as base64 in a variable', async () => {
    // PFX ::= SEQUENCE { version INTEGER 3, authSafe SEQUENCE { 1.2.840.113549.1.7.1, ... (RFC 7292, 4)
    const bytes = Buffer.concat([
      Buffer.from('308203e8020103308203ae06092a864886f70d010701', 'hex'),
      Buffer.alloc(978),
    ]);
    const value = bytes.toString('base64');
    const faults = await faultsOf({
      certificate: await file('app.p12', bytes),
      privateKey: value,
      chain: value,
    });
    expect(faults.map(({ message }) => message)).toEqual([
      expect.stringMatching(/PKCS#12.*openssl pkcs12 -in \S+app\.p12 -clcerts -nokeys -out certificate\.pem/),
      expect.stringMatching(/PKCS#12.*openssl pkcs12 -in <file> -nocerts -nodes -out private-key\.pem/),
      expect.stringMatching(/PKCS#12.*-cacerts -nokeys -out chain\.pem/),
    ]);
  });

  const ifOpenssl = spawnSync('openssl', ['version']).status === 0 ? it : it.skip;
  ifOpenssl('the converting command brings what is accepted', async () => {
    const { file: input } = await file('app.der', der(app.certificate));
    const output = join(folder, 'converted.pem');
    const { message } = await onlyFault({ ...good(), certificate: { file: input } });
    const command = /Convert it: openssl (.*)$/
      .exec(message)?.[1]
      .replace('certificate.pem', output)
      .split(' ');
    execFileSync('openssl', command ?? []);
    expect((await load({ ...good(), certificate: { file: output } })).faults).toEqual([]);
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
    const { message } = await onlyFault({ ...good(), certificate: app.key, privateKey: app.certificate });
    expect(message).toMatch(
      /holds the private key, and tls\.privateKey \(SERVICE_TLS_PRIVATE_KEY\) holds the certificate: the two are swapped/,
    );
  });

  it('certificate and chain swapped', async () => {
    const { message } = await onlyFault({ ...good(), certificate: authority.chain, chain: app.certificate });
    expect(message).toMatch(/stands in tls\.chain: application certificate and chain are swapped/);
    const chain = await file('swapped.pem', app.certificate);
    const inFile = await onlyFault({ ...good(), certificate: authority.chain, chain });
    expect(inFile.message).toContain(`stands in tls.chain (${chain.file}): application certificate`);
  });

  it('the chain in place of the certificate', async () => {
    expect((await onlyFault({ ...good(), certificate: authority.chain })).message).toMatch(
      /certificate authority's certificate, "CN=Service Intermediate"/,
    );
  });

  it('the application certificate in the chain too', async () => {
    const { option, message } = await onlyFault({ ...good(), chain: authority.chain + app.certificate });
    expect(option).toBe('tls.chain');
    expect(message).toMatch(/holds the application certificate itself, "CN=app"/);
  });

  it('the same file given for both', async () => {
    const withKey = await onlyFault({ ...good(), certificate: app.key });
    expect(withKey.message).toMatch(/holds a private key where the application certificate is expected/);
    const key = createPrivateKey(app.key);
    for (const [name, content] of [
      ['a private key in DER (binary) form', key.export({ type: 'pkcs8', format: 'der' })],
      [
        'an encrypted private key in DER (binary) form',
        key.export({ type: 'pkcs8', format: 'der', cipher: 'aes-256-cbc', passphrase: 'x' }),
      ],
      ['a private key in OpenSSH format', pem('OPENSSH PRIVATE KEY', Buffer.alloc(120))],
    ] as const) {
      const { message } = await onlyFault({ ...good(), certificate: await file('foreign', content) });
      expect(message).toContain(` holds ${name} where the application certificate is expected.`);
    }
    const withCertificate = await onlyFault({ ...good(), privateKey: app.certificate });
    expect(withCertificate.message).toMatch(/holds a certificate where the private key is expected/);
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
      expect(message).toMatch(/holds a private key beside certificates. Take it out/);
    const openssh = pem('OPENSSH PRIVATE KEY', Buffer.alloc(120));
    expect((await onlyFault({ ...good(), chain: authority.chain + openssh })).message).toMatch(
      /private key beside/,
    );
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
      /encrypted key and there is no passphrase. Set tls\.passphrase \(SERVICE_TLS_PASSPHRASE\), or decrypt the key: openssl pkey/,
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

  it('with a cipher that OpenSSL reads no longer', async () => {
    // RFC 8018: pbeWithMD5AndDES-CBC, 8 bytes of salt, 2,048 rounds.
    const algorithm = Buffer.from('301b06092a864886f70d010503300e04080102030405060708' + '02020800', 'hex');
    const inner = Buffer.concat([algorithm, Buffer.from('0440', 'hex'), Buffer.alloc(64, 9)]);
    const old = pem('ENCRYPTED PRIVATE KEY', Buffer.concat([Buffer.from([0x30, inner.length]), inner]));
    const privateKey = await file("it's old.pem", old);
    const { option, message } = await onlyFault({ ...good(), privateKey, passphrase: 'x' });
    expect(option).toBe('tls.privateKey');
    expect(message).toMatch(/encrypted with a cipher that this OpenSSL no longer reads/);
    expect(message).toContain(
      `openssl pkcs8 -topk8 -v2 aes-256-cbc -provider legacy -provider default -in '`,
    );
    expect(message).toContain(`it'\\''s old.pem' -out private-key.pem`);
  });

  it('the passphrase of a file loses one newline at its end, that of an option none', async () => {
    const privateKey = encrypted('x\n');
    expect((await load({ ...good(), privateKey, passphrase: 'x\n' })).faults).toEqual([]);
    const passphrase = await file('newlines', 'x\n\r\n');
    expect((await load({ ...good(), privateKey, passphrase })).faults).toEqual([]);
    expect((await onlyFault({ ...good(), privateKey, passphrase: 'x' })).option).toBe('tls.passphrase');
  });

  it.each([
    ['AES-256-CBC', 'tls.passphrase', /does not open the private key/],
    ['DES-EDE3-CBC', 'tls.passphrase', /does not open the private key/],
    ['DES-CBC', 'tls.privateKey', /cipher that this OpenSSL no longer reads/],
  ])('in traditional form, with %s, that holds nonsense', async (algorithm, option, expected) => {
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
    expect(fault.option).toBe(option);
    expect(fault.message).toMatch(expected);
  });

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
    expect(fault.message).toMatch(/does not open the private key.*wrong, or the key is damaged/);
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
      /holds a block labelled "CERTFICATE" .*It should begin with -----BEGIN CERTIFICATE-----/,
    ],
    ['a label in mixed case', () => relabelled(other.certificate, 'Certificate'), /labelled "Certificate"/],
    ['a certificate request', () => request('app', app.keys), /certificate request \(CSR\) beside/],
    ['a revocation list', () => pem('X509 CRL', Buffer.alloc(80)), /labelled "X509 CRL"/],
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

  it('beside a key; but not its parameters, nor the attributes that openssl pkcs12 writes', async () => {
    const privateKey = pem('PRIVATE KYE', Buffer.alloc(80)) + app.key;
    expect((await onlyFault({ ...good(), privateKey })).message).toMatch(/labelled "PRIVATE KYE"/);
    const attributes = 'Bag Attributes\n    localKeyID: 01 02\nKey Attributes: <No Attributes>\n';
    expect((await load({ ...good(), privateKey: attributes + app.key })).faults).toEqual([]);
    const chain = `# --- the chain ---\n${attributes}subject=CN = x\n${authority.chain}`;
    expect((await load({ ...good(), chain })).faults).toEqual([]);
  });

  it('of a value says how a .env file holds several lines; of a file it does not', async () => {
    const [first] = authority.chain.split('\n');
    expect((await onlyFault({ ...good(), chain: first })).message).toMatch(
      /truncated.*In a \.env file, put it in quotes or write \\n for the line breaks/,
    );
    expect((await onlyFault({ ...good(), chain: await file('cut.pem', first) })).message).not.toMatch(
      /\.env/,
    );
  });
});

describe('Garbage', () => {
  const cut = (text: string) => text.slice(0, text.length - 60);
  const rows: [string, () => string, RegExp][] = [
    ['garbage', () => 'this is no chain', /holds no PEM/],
    ['truncated', () => cut(authority.chain), /is truncated/],
    ['begun too late', () => authority.chain.slice(40), /is truncated/],
    ['empty', () => '', /is empty/],
    [
      'a certificate of nonsense',
      () => pem('CERTIFICATE', Buffer.alloc(100, 7)),
      /block 1 of the value is no readable certificate/,
    ],
    [
      'a second certificate of nonsense',
      () => authority.root.certificate + pem('CERTIFICATE', Buffer.alloc(9)),
      /block 2 of/,
    ],
    ['no certificate', () => pem('DH PARAMETERS', Buffer.alloc(20)), /no certificate/],
  ];
  it.each(rows)('%s: chain and certificate', async (_name, content, expected) => {
    for (const key of ['chain', 'certificate'] as const) {
      const faults = await faultsOf({ ...good(), [key]: content() });
      expect(faults[0]).toMatchObject({ option: `tls.${key}`, message: expect.stringMatching(expected) });
    }
  });

  it.each(['3003020105', '30053003020105'])('DER that is nothing known: %s', async (hex) => {
    const certificate = await file('unknown.der', Buffer.from(hex, 'hex'));
    const { message } = await onlyFault({ ...good(), certificate });
    expect(message).toMatch(/holds no PEM/);
  });

  it.each([
    ['a word', 'nonsense'],
    ['a path that is too long', `/${'a'.repeat(300)}.pem`],
  ])('%s is not taken for a path', async (_, certificate) => {
    const { message } = await onlyFault({ ...good(), certificate });
    expect(message).toMatch(/ holds no PEM .*, nor the base64 of one\.$/);
  });

  it('a path from a function: no variable is named', async () => {
    const source = () => ({ ...good(), certificate: '/run/tls.crt' });
    const { faults } = await loadIdentity({ source, reload: false, locate });
    expect(faults[0]?.message).toMatch(
      /looks like a path: give a file as tls\.certificate: \{ file: '\.\.\.' \}\.$/,
    );
  });

  it('PEM blocks without a private key', async () => {
    const privateKey = pem('EC PARAMETERS', Buffer.from('06082a8648ce3d030107', 'hex'));
    const { option, message } = await onlyFault({ ...good(), privateKey });
    expect([option, message]).toEqual([
      'tls.privateKey',
      expect.stringMatching(/PEM blocks, but no private key/),
    ]);
  });

  it('a damaged private key', async () => {
    const fault = await onlyFault({ ...good(), privateKey: pem('PRIVATE KEY', Buffer.alloc(100, 7)) });
    expect(fault.message).toMatch(/private key that cannot be read/);
    expect((await onlyFault({ ...good(), privateKey: cut(app.key) })).message).toMatch(/is truncated/);
    expect((await onlyFault({ ...good(), privateKey: 'nonsense' })).message).toMatch(/BEGIN PRIVATE KEY/);
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

  it('a key where the certificate belongs, and nothing of use for the key, are not swapped', async () => {
    const faults = await faultsOf({
      ...good(),
      certificate: app.key,
      privateKey: pem('DH PARAMETERS', Buffer.alloc(20)),
    });
    expect(faults.map(({ message }) => message)).toEqual([
      'the value holds a private key where the application certificate is expected.',
      expect.stringMatching(/block labelled "DH PARAMETERS" .*not the private key as PEM/),
    ]);
  });

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
    expect(message).toMatch(/Generate a new one in the developer portal/);
    const early = await authority.client('new', { notBefore: at(2), notAfter: at(9) });
    expect((await onlyFault({ certificate: early.certificate, privateKey: early.key })).message).toMatch(
      /is not valid before/,
    );
  });

  it('a chain none of which is valid: error; one of several expired, or ending soon: warning', async () => {
    const expired = await issue('Old Root', { ca: true, notBefore: at(-20), notAfter: at(-2) });
    const soon = await issue('Root ending', { ca: true, notAfter: at(20) });
    expect((await onlyFault({ ...good(), chain: expired.certificate })).message).toMatch(
      /no certificate of the service's chain is valid now/,
    );
    const { identity, warnings } = await load({
      ...good(),
      chain: expired.certificate + soon.certificate + authority.chain,
    });
    expect(identity).toBeDefined();
    expect(warnings).toEqual([
      expect.stringMatching(/"CN=Old Root".*expired on/),
      expect.stringMatching(/"CN=Root ending".*expires on/),
    ]);
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
