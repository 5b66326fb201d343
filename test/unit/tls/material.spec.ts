import { beforeAll, afterAll, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type PemValue } from '../../../lib/config/secret.js';
import { type TlsIdentityPems } from '../../../lib/config/tls.options.js';
import { isUnsupportedInTls13 } from '../../../lib/exchange/response.js';
import { daysLeft, keyTypeOf } from '../../../lib/tls/certificate-summary.js';
import { describeUnknownAlgorithm } from '../../../lib/tls/material/check-identity.js';
import {
  createAuthority,
  issue,
  pem,
  createCertificateRequest,
  type Authority,
  type Issued,
  withoutPaths,
} from '../../helpers/certificates.js';
import { loadIdentity, locate, tlsSettings } from './tls-settings.js';

type Key = keyof typeof VARIABLES;
type Given = Partial<Record<Key, PemValue | undefined>>;

const VARIABLES = {
  certificate: 'SERVICE_TLS_CERTIFICATE',
  privateKey: 'SERVICE_TLS_PRIVATE_KEY',
  passphrase: 'SERVICE_TLS_PASSPHRASE',
  chain: 'SERVICE_TLS_CHAIN',
};
const PASSPHRASE = 'open-sesame';

let authority: Authority;
let app: Issued;
let other: Issued;
let folder: string;

beforeAll(async () => {
  authority = await createAuthority();
  [app, other] = await Promise.all([authority.client('app'), authority.client('other')]);
  folder = await mkdtemp(join(tmpdir(), 'tls-'));
});
afterAll(() => rm(folder, { recursive: true }));

const load = (pems: TlsIdentityPems, now?: number) => loadIdentity(tlsSettings(pems), now);
const good = () => ({ certificate: app.certificate, privateKey: app.key, chain: authority.chain });

async function file(name: string, content: string | Buffer): Promise<{ file: string }> {
  const path = join(folder, name);
  await writeFile(path, content);
  return { file: path };
}

const encrypted = (passphrase: string) =>
  createPrivateKey(app.key)
    .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase })
    .toString();
const traditionally = (cipher: string) =>
  createPrivateKey(app.key)
    .export({ type: 'sec1', format: 'pem', cipher, passphrase: PASSPHRASE })
    .toString();
const camellia = () => traditionally('camellia-256-cbc');
const sec1 = () => createPrivateKey(app.key).export({ type: 'sec1', format: 'pem' }).toString();
const PARAMETERS = pem('EC PARAMETERS', Buffer.from('06082a8648ce3d030107', 'hex'));

/** What readers of variables make of the line breaks, so that a PEM can still be read. */
const LOST_BREAKS: [string, (text: string) => string][] = [
  ['line breaks that became CR CR LF', (text) => text.replaceAll('\n', '\r\r\n')],
  ['line breaks that became blanks', (text) => text.replaceAll('\n', ' ')],
  ['line breaks that vanished', (text) => text.replaceAll('\n', '')],
  ['newlines escaped twice', (text) => text.replaceAll('\n', '\\\\n')],
  ['CRLF escaped three times', (text) => text.replaceAll('\n', '\\\\\\\\r\\\\\\\\n')],
  ['quotes around each line', (text) => text.replaceAll(/^(?=.)|(?<=.)$/gm, '"')],
];

describe('Accepted PEMs', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const attributes = 'Bag Attributes\n    localKeyID: 01 02\nKey Attributes: <No Attributes>\n';
  it.each<[string, (text: string) => string | Buffer]>([
    ['plain text', (text) => text],
    ['escaped newlines', (text) => text.replaceAll('\n', '\\n')],
    ['escaped CRLF', (text) => text.replaceAll('\n', '\\r\\n')],
    ['CRLF', (text) => text.replaceAll('\n', '\r\n')],
    ...LOST_BREAKS,
    ['a byte order mark', (text) => `\uFEFF${text}`],
    [
      'text around the blocks',
      (text) => `# --- of us ---\n${attributes}subject=CN = app\n${text}\nthe end\n`,
    ],
    ['UTF-16, as PowerShell writes it', (text) => Buffer.from(`\uFEFF${text}`, 'utf16le')],
    ['UTF-16, big-endian', (text) => Buffer.from(`\uFEFF${text}`, 'utf16le').swap16()],
    ['text in Latin-1 before it', (text) => Buffer.from(`ÿ\n${text}`, 'latin1')],
    ['indented', (text) => text.replaceAll(/^/gm, '    ')],
    ['quotes around it', (text) => `"${text.replaceAll('\n', '\\n')}"`],
    ['base64', base64],
    ['base64 in lines', (text) => base64(text).replace(/(.{76})/g, '$1\n')],
    ['base64 after a byte order mark', (text) => `\uFEFF${base64(text)}`],
  ])('PEMs in this form are accepted, as a value and in a file: %s', async (_name, form) => {
    const values: Given = {};
    const files: Given = {};
    for (const [key, text] of Object.entries(good()) as [Key, string][]) {
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

  it('certificate, chain and key may share one file that both options name, in any order', async () => {
    for (const text of [
      app.certificate + authority.chain + app.key,
      app.key + app.certificate + authority.chain,
      PARAMETERS + sec1() + app.certificate + authority.chain,
    ]) {
      for (const each of [text, await file('both.pem', text)]) {
        const { identity, faults } = await load({ ...good(), certificate: each, privateKey: each });
        expect(faults).toEqual([]);
        expect(identity?.certificate?.fingerprint256).toBe(
          new X509Certificate(app.certificate).fingerprint256,
        );
        expect(identity?.sent.map(({ subject }) => subject)).toEqual([
          'CN=app',
          'CN=Service Intermediate',
          'CN=Service Root',
        ]);
      }
    }
  });

  it('encrypted keys are accepted as PKCS#8 and in the traditional format, with any line breaks, also behind the passphrase', async () => {
    const [traditional, tripleDes] = ['aes-256-cbc', 'des-ede3-cbc'].map(traditionally);
    const inFile = await file('passphrase', `${PASSPHRASE}\r\n\n`);
    const forms = [(text: string) => text, ...LOST_BREAKS.map(([, form]) => form)];
    const keys = forms.flatMap((form) => [encrypted(PASSPHRASE), traditional, tripleDes].map(form));
    for (const privateKey of [...keys, traditional.replaceAll('\n', '\\n'), camellia()]) {
      for (const passphrase of [inFile, `${PASSPHRASE}\n`, PASSPHRASE])
        expect((await load({ ...good(), privateKey, passphrase })).faults).toEqual([]);
    }
  });

  it('all PEMs may be missing, or all but the chain', async () => {
    expect((await load({})).identity?.certificate).toBeUndefined();
    expect((await load({ chain: authority.intermediate.certificate })).identity).toBeDefined();
  });
});

const NO_PEM = /is not PEM .*convert it \(https:\S+\/certificates\.md#other-formats\)\.$/;
const CSR = /holds a certificate request \(CSR\) in place of the certificate that was issued for it/;
const BREAKS_ARE_LOST =
  /its line breaks are lost .* systemd .* in double quotes, write the base64 .* variable that ends in _FILE\.$/;
const PKCS11 = /^is a PKCS#11 URI, .*: let a sidecar .*#a-sidecar-has-the-key\)\.$/;
const NO_FILE = /^the file \S+nowhere\.pem cannot be read \(ENOENT\)\.$/;
const cut = (text: string) => text.slice(0, text.length - 60);
const der = (text: string) => new X509Certificate(text).raw;
const nowhere = () => ({ file: join(folder, 'nowhere.pem') });
const openssh = pem('OPENSSH PRIVATE KEY', Buffer.alloc(120));
const both = () => app.certificate + app.key;

/** The wrong value of an option, the option that the fault names, and the message of the fault. */
type Fault = [what: string, given: () => Given | Promise<Given>, at: Key, says: RegExp];

const OF_FILES: Fault[] = [
  ['a missing file', () => ({ certificate: nowhere() }), 'certificate', NO_FILE],
  [
    'a directory',
    () => ({ privateKey: { file: folder } }),
    'privateKey',
    /cannot be read \(not a regular file\)/,
  ],
  [
    // Reading this pipe would never end, because nobody writes to it.
    'a pipe',
    () => {
      const path = join(folder, 'pipe');
      execFileSync('mkfifo', [path]);
      return { privateKey: { file: path } };
    },
    'privateKey',
    /cannot be read \(not a regular file\)/,
  ],
  [
    'a file of any length',
    async () => ({ chain: await file('large.pem', authority.chain + ' '.repeat(1024 * 1024)) }),
    'chain',
    /larger than 1 MiB/,
  ],
  [
    'an empty file',
    async () => ({ chain: await file('empty.pem', ' \n') }),
    'chain',
    /^the file \S+empty\.pem is empty/,
  ],
  ['an empty text', () => ({ chain: '' }), 'chain', /^the value is empty/],
  [
    'bytes, from plain JavaScript',
    () => ({ certificate: Buffer.from(app.certificate) as unknown as PemValue }),
    'certificate',
    /^is neither text nor \{ file: path \}\.$/,
  ],
  ['a missing passphrase file, which no key needs', () => ({ passphrase: nowhere() }), 'passphrase', NO_FILE],
  [
    'a missing passphrase file, which the key needs',
    () => ({ privateKey: encrypted('x'), passphrase: nowhere() }),
    'passphrase',
    NO_FILE,
  ],
  [
    'a secret as the name of its file',
    () => ({ passphrase: { file: PASSPHRASE } }),
    'passphrase',
    /^names a file that cannot be read \(ENOENT\)\. The path is not shown/,
  ],
  [
    'a path where PEM text belongs',
    () => ({ privateKey: '/run/secrets/key.pem' }),
    'privateKey',
    /looks like a path: give a file as tls\.privateKey: \{ file: '\.\.\.' \}, or in a variable whose name ends in _FILE/,
  ],
  [
    'a path that is too long for one',
    () => ({ certificate: `/${'a'.repeat(600)}.pem` }),
    'certificate',
    NO_PEM,
  ],
];

const OF_CONTENTS: Fault[] = [
  ['a word', () => ({ certificate: 'nonsense' }), 'certificate', NO_PEM],
  [
    'a DER certificate',
    async () => ({ certificate: await file('app.cer', der(app.certificate)) }),
    'certificate',
    NO_PEM,
  ],
  [
    'a DER chain in base64',
    () => ({ chain: der(authority.root.certificate).toString('base64') }),
    'chain',
    NO_PEM,
  ],
  ['a key in OpenSSH format', () => ({ privateKey: openssh }), 'privateKey', /OpenSSH format \(ssh-keygen/],
  [
    'a certificate request',
    async () => ({ certificate: await createCertificateRequest('app', app.keys) }),
    'certificate',
    CSR,
  ],
  [
    'a certificate request as key',
    async () => ({ privateKey: await createCertificateRequest('a', app.keys) }),
    'privateKey',
    CSR,
  ],
  [
    'a public key',
    () => ({ privateKey: pem('PUBLIC KEY', Buffer.alloc(80)) }),
    'privateKey',
    /holds a public key, which is also in the certificate, and no private key .*, which belongs there\.$/,
  ],
  [
    'a key that only a TPM can use',
    () => ({ privateKey: pem('TSS2 PRIVATE KEY', Buffer.alloc(80)) }),
    'privateKey',
    /holds a key that only the TPM of its machine can use, and no private key .*: let a sidecar .*#a-sidecar-has-the-key\)\.$/,
  ],
  [
    'the name of a key in an HSM, in PEM',
    () => ({ privateKey: pem('PKCS#11 PROVIDER URI', Buffer.alloc(80)) }),
    'privateKey',
    /holds a PKCS#11 URI, .*: let a sidecar .*#a-sidecar-has-the-key\)\.$/,
  ],
  [
    'the name of a key in an HSM, in PEM behind its certificate',
    () => {
      const shared = app.certificate + pem('PKCS#11 PROVIDER URI', Buffer.alloc(80));
      return { certificate: shared, privateKey: shared };
    },
    'privateKey',
    /holds a PKCS#11 URI, .*: let a sidecar .*#a-sidecar-has-the-key\)\.$/,
  ],
  ...['pkcs11:token=hsm;object=app?pin-value=1234', 'engine:pkcs11:pkcs11:token=hsm;object=app'].flatMap(
    (uri): Fault[] => [
      [`the text ${uri}`, () => ({ privateKey: uri }), 'privateKey', PKCS11],
      [`${uri} in place of a file`, () => ({ privateKey: { file: uri } }), 'privateKey', PKCS11],
    ],
  ),
  [
    // The format that `certtool --to-p12` writes without --outder.
    'PKCS#12 in PEM, as key',
    () => ({ privateKey: pem('PKCS12', Buffer.alloc(80)) }),
    'privateKey',
    /holds PKCS#12 as PEM, .*, and no private key .*: convert it \(https:\S+#other-formats\)\.$/,
  ],
  ...(
    [
      ['PKCS7', /holds PKCS#7\./],
      ['PKCS #7 SIGNED DATA', /holds PKCS#7\./],
      ['CMS', /holds PKCS#7\./],
      ['PKCS12', /holds PKCS#12 as PEM, which OpenSSL does not read\./],
      ['TRUSTED CERTIFICATE', /holds a certificate with OpenSSL's trust settings\./],
    ] as const
  ).map(([label, says]): Fault => [
    `${label} in place of certificates, which can be converted`,
    () => ({ chain: pem(label, Buffer.alloc(80)) }),
    'chain',
    new RegExp(
      `${says.source} Only certificates belong there .*: convert it \\(https:\\S+#other-formats\\)\\.$`,
    ),
  ]),
  ...(
    [
      ['X509 CRL', /a certificate revocation list \(CRL\)/],
      ['NEW CERTIFICATE REQUEST', /a certificate request \(CSR\)/],
      ['RSA PUBLIC KEY', /a public key/],
      ['X9.42 DH PARAMETERS', /the parameters of a key/],
      ['AB123', /a PEM block of another kind/],
    ] as const
  ).map(([label, says]): Fault => [
    `${label} beside certificates`,
    () => ({ chain: authority.chain + pem(label, Buffer.alloc(80)) }),
    'chain',
    new RegExp(`holds ${says.source}.*Only certificates belong there .*: remove everything else\\.$`),
  ]),
  [
    // `KEY=-----BEGIN ...\n...` in an EnvironmentFile of systemd, without quotes.
    'a certificate with the letter n for its line breaks',
    () => ({ certificate: app.certificate.replaceAll('\n', 'n') }),
    'certificate',
    BREAKS_ARE_LOST,
  ],
  [
    'a key with the letter n for its line breaks',
    () => ({ privateKey: app.key.replaceAll('\n', 'n') }),
    'privateKey',
    BREAKS_ARE_LOST,
  ],
  [
    'an encrypted key without line breaks whose cipher does not say where the header ends',
    () => ({ privateKey: camellia().replaceAll('\n', ''), passphrase: PASSPHRASE }),
    'privateKey',
    BREAKS_ARE_LOST,
  ],
  [
    'a foreign character between BEGIN and END',
    () => ({ certificate: app.certificate.replace('\n', '\n#') }),
    'certificate',
    /holds no readable certificate in its PEM block 1/,
  ],
  [
    // To Node 20, ML-DSA is one.
    'a key of an algorithm that OpenSSL does not know',
    () => {
      const der = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'der' });
      der[11] = 0; // The last byte of the algorithm's identifier.
      return { privateKey: pem('PRIVATE KEY', der) };
    },
    'privateKey',
    /holds a key of an algorithm that this Node does not know \(OpenSSL [\d.]+\S*\)/,
  ],
  ['a chain that is cut', () => ({ chain: cut(authority.chain) }), 'chain', /is truncated/],
  ['a chain that begins too late', () => ({ chain: authority.chain.slice(40) }), 'chain', /is truncated/],
  [
    'the first line of a text, as of a .env file',
    () => ({ chain: authority.chain.split('\n')[0] }),
    'chain',
    /truncated.*In a \.env file, put it in quotes or write \\n for the line breaks/,
  ],
  ['a key that is cut', () => ({ privateKey: cut(app.key) }), 'privateKey', /is truncated/],
  [
    'a certificate of nonsense',
    () => ({ certificate: pem('CERTIFICATE', Buffer.alloc(100, 7)) }),
    'certificate',
    /holds no readable certificate in its PEM block 1: it is damaged or incomplete/,
  ],
  [
    'a second certificate of nonsense',
    () => ({ chain: authority.root.certificate + pem('CERTIFICATE', Buffer.alloc(9)) }),
    'chain',
    /PEM block 2/,
  ],
  [
    'a damaged key',
    () => ({ privateKey: pem('PRIVATE KEY', Buffer.alloc(100, 7)) }),
    'privateKey',
    /private key that cannot be read/,
  ],
];

const OF_PAIRS: Fault[] = [
  [
    'the key of another certificate',
    () => ({ privateKey: other.key }),
    'privateKey',
    /key of another certificate, not of "CN=app" \(SHA-256 /,
  ],
  [
    'certificates of the chain before that of the application',
    () => ({ certificate: authority.chain + app.certificate }),
    'certificate',
    /begins with a certificate of the chain, "CN=Service Intermediate".*"CN=app".*at place 3\. Put the application certificate first/,
  ],
  ...(['swapped', 'in both places'] as const).map((how): Fault => [
    `the chain in place of the certificate, ${how}`,
    () => ({ certificate: authority.chain, chain: how === 'swapped' ? app.certificate : authority.chain }),
    'certificate',
    /certificate authority's certificate, "CN=Service Intermediate".*chain belongs in tls\.chain/,
  ]),
  [
    'one text for both, with the key alone',
    () => ({ certificate: app.key }),
    'certificate',
    /^the value holds no certificate\.$/,
  ],
  [
    'one text for both, with the certificate alone',
    () => ({ privateKey: app.certificate }),
    'privateKey',
    /holds a certificate, and no private key/,
  ],
  [
    'a certificate without key',
    () => ({ privateKey: undefined }),
    'privateKey',
    /is missing: tls\.certificate is set.*Set the key,/,
  ],
  [
    'a key without certificate',
    () => ({ certificate: undefined }),
    'certificate',
    /is missing: tls\.privateKey is set.*Set the certificate,/,
  ],
  [
    'a key in the chain',
    () => ({ chain: authority.chain + other.key }),
    'chain',
    /holds a private key\. Only certificates belong there .*: remove everything else/,
  ],
  [
    'a key in the chain, and in the one file of certificate and key',
    () => ({ certificate: both(), privateKey: both(), chain: both() }),
    'chain',
    /holds a private key\. Only certificates belong there/,
  ],
  [
    'a key with the certificate, and in a file of its own',
    () => ({ certificate: both() }),
    'certificate',
    /holds a private key\. Only certificates belong there/,
  ],
  [
    'a key in OpenSSH format too',
    () => ({ certificate: both() + openssh, privateKey: both() + openssh }),
    'certificate',
    /holds a private key in OpenSSH format/,
  ],
  ['two keys', () => ({ privateKey: app.key + other.key }), 'privateKey', /holds 2 private keys/],
  [
    'an encrypted key without passphrase',
    () => ({ privateKey: encrypted('x') }),
    'privateKey',
    /encrypted key and there is no passphrase\. Set tls\.passphrase \(SERVICE_TLS_PASSPHRASE\), or decrypt the key/,
  ],
  [
    'a wrong passphrase',
    () => ({ privateKey: encrypted('x'), passphrase: PASSPHRASE }),
    'passphrase',
    /^the passphrase does not open the private key: it is wrong \(.*expandVariables of ConfigModule a \$ needs a backslash before it\), the key is damaged, or .*openssl pkcs8/,
  ],
];

describe.each([
  ['Faults of files', OF_FILES],
  ['Faults of contents', OF_CONTENTS],
  ['Faults of certificate and key together', OF_PAIRS],
])('%s', (_, faults) => {
  it.each(faults)('reports one fault, at the option to change, for %s', async (_what, given, at, says) => {
    const pems: Given = { ...good(), ...(await given()) };
    const loaded = await load(pems);
    expect(loaded.identity).toBeUndefined();
    const variable = VARIABLES[at] + (typeof pems[at] === 'object' && 'file' in pems[at] ? '_FILE' : '');
    expect(loaded.faults).toEqual([{ option: `tls.${at}`, variable, message: expect.stringMatching(says) }]);
    // Nothing of what the PEMs hold.
    const shown = withoutPaths(loaded.faults[0].message, folder);
    expect(shown).not.toMatch(new RegExp(`[A-Za-z0-9+/]{40}|${PASSPHRASE}`));
  });
});

describe('Several faults', () => {
  const optionsOf = async (given: Given) => {
    const { faults } = await load({ ...good(), ...given });
    return faults.map(({ option }) => option).sort();
  };

  it('faults of several options are reported together', async () => {
    const day = 86_400_000;
    const expired = await authority.client('old', { notAfter: new Date(Date.now() - day / 2) });
    const given = { certificate: expired.certificate, privateKey: other.key, chain: 'nonsense' };
    expect(await optionsOf(given)).toEqual(['tls.certificate', 'tls.chain', 'tls.privateKey']);
    const inBoth = { certificate: app.certificate + app.key, chain: authority.chain + other.key };
    expect(await optionsOf(inBoth)).toEqual(['tls.certificate', 'tls.chain']);
  });

  it('a swapped certificate and key give two faults that say what each value contains', async () => {
    const { faults } = await load({ ...good(), certificate: app.key, privateKey: app.certificate });
    expect(faults).toMatchObject([
      {
        option: 'tls.certificate',
        message: expect.stringMatching(/holds a private key\. Only certificates/),
      },
      { option: 'tls.privateKey', message: expect.stringMatching(/holds a certificate, and no private key/) },
    ]);
  });

  it('a fault of the key and a missing passphrase file are both reported', async () => {
    const passphrase = nowhere();
    for (const privateKey of ['no PEM', nowhere(), app.key + other.key])
      expect(await optionsOf({ privateKey, passphrase })).toEqual(['tls.passphrase', 'tls.privateKey']);
    expect((await load({ passphrase })).faults).toHaveLength(1);
  });

  it('faults show nothing of the contents, whichever PEM is in the wrong option', async () => {
    const texts = [
      app.certificate,
      app.key,
      encrypted(PASSPHRASE),
      authority.chain,
      pem('OPENSSH PRIVATE KEY', Buffer.alloc(120, 7)),
      app.key.replaceAll('\n', ' '),
      app.key.replaceAll('\n', '').replace('PRIVATE KEY-----', 'PRIVATE KEY '),
      app.key.slice(30, -30),
      Buffer.from(app.key).toString('base64'),
      PASSPHRASE,
    ];
    const secrets = texts.flatMap((text) => text.match(/[\w+/=-]{24,}|open-sesame/g) ?? []);
    const asFiles = await Promise.all(texts.map((text, index) => file(`swapped-${index}`, text)));
    for (const value of [...texts, ...asFiles, ...texts.map((text) => ({ file: text }))]) {
      for (const key of Object.keys(VARIABLES)) {
        const shown = JSON.stringify((await load({ ...good(), [key]: value })).faults);
        for (const secret of secrets) expect(shown).not.toContain(secret);
      }
    }
  });
});

describe('PEM parts that OpenSSL would silently ignore', () => {
  const relabelled = (label: string) => other.certificate.replaceAll('CERTIFICATE', label);
  it.each<[string, () => string, RegExp]>([
    ['a cut boundary at the end', () => '-----BEGIN CERTIFICATE---', /is truncated/],
    ['boundaries with a dash too few', () => other.certificate.replaceAll('-----', '----'), /is truncated/],
    ['boundaries in small letters', () => relabelled('x').toLowerCase(), /is truncated/],
    ['a misspelt label', () => relabelled('CERTFICATE'), /holds a PEM block of another kind/],
    ['a label in mixed case', () => relabelled('Certificate'), /holds a PEM block of another kind/],
    ['a revocation list', () => pem('X509 CRL', Buffer.alloc(80)), /holds a certificate revocation list/],
  ])('a fault is reported for %s, before or after a good certificate', async (_name, part, says) => {
    const message = expect.stringMatching(says);
    for (const chain of [`${authority.chain}${part()}\n`, `${part()}\n${authority.chain}`]) {
      expect((await load({ ...good(), chain })).faults).toMatchObject([{ option: 'tls.chain', message }]);
    }
    const certificate = `${app.certificate}${part()}\n`;
    expect((await load({ ...good(), certificate })).faults).toMatchObject([
      { option: 'tls.certificate', message },
    ]);
  });

  const BEGIN = '-----BEGIN X-----\n';
  const END = '-----END X-----\n';
  it.each([
    ['an end without a beginning of its own', `${BEGIN}${END}${END}${BEGIN}`],
    ['a block within another', `${BEGIN}AA\n-----BEGIN Y-----\nBB\n-----END Y-----\n${END}`],
  ])('a chain with %s is reported as truncated', async (_name, chain) => {
    expect((await load({ chain })).faults).toMatchObject([
      { message: expect.stringMatching(/is truncated/) },
    ]);
  });

  // 1 MiB is the largest accepted file. A parser with quadratic time would need seconds to hours for each of these.
  it.each([
    ['beginnings', BEGIN, /is truncated/],
    ['ends', END, /is truncated/],
    ['blocks that end as another', `${BEGIN}-----END Y-----\n`, /is truncated/],
    ['halves of boundaries', '-----BEGIN ', /is truncated/],
    ['backslashes', `${BEGIN}${'\\'.repeat(999)}`, /is truncated/],
    ['blanks', `${BEGIN}${' '.repeat(99_999)}`, /is truncated/],
    ['dashes', `${BEGIN}${'-'.repeat(999_999)}`, /is truncated/],
    ['blocks of an unknown kind', BEGIN + END, /PEM block of another kind/],
    ['empty certificates', (BEGIN + END).replaceAll('X', 'CERTIFICATE'), /no readable .* PEM block 1:/],
  ])('a fault is reported for 1 MiB of %s before the test times out', async (_name, text, says) => {
    const { faults } = await load({ chain: text.repeat(Math.floor(2 ** 20 / text.length)) });
    expect(faults).toMatchObject([{ option: 'tls.chain', message: expect.stringMatching(says) }]);
  });
});

describe('A tls function', () => {
  const faultsOf = async (source: () => unknown) =>
    (await loadIdentity({ source: source as never, reload: true, locate })).faults;

  it('a tls function may return texts or files and leave options out, and anything else is a fault', async () => {
    expect(await faultsOf(good)).toEqual([]);
    const files = {
      certificate: await file('function.crt', app.certificate),
      privateKey: await file('function.key', app.key),
      chain: null,
    };
    expect(await faultsOf(() => files)).toEqual([]);
    for (const privateKey of [7, true, { path: 'x' }, () => 'x']) {
      expect(await faultsOf(() => ({ ...files, privateKey }))).toEqual([
        { option: 'tls.privateKey', message: 'is neither text nor { file: path }.' },
      ]);
    }
    expect((await faultsOf(() => undefined))[0].message).toMatch(/returned no object/);
  });

  it('the faults of a tls function name only the option, because it has no variables', async () => {
    const [fault] = await faultsOf(() => ({ ...good(), privateKey: encrypted('x') }));
    expect(fault.message).toMatch(/there is no passphrase\. Set tls\.passphrase, or decrypt the key/);
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
    'a tls function that throws %p gives a fault that shows only ignoreErrors parts of the error',
    async (thrown, reason) => {
      expect(await faultsOf(() => Promise.reject(thrown as Error))).toEqual([
        {
          option: 'tls',
          message: `the function failed (${reason}). Check the vault or store that it reads.`,
        },
      ]);
    },
  );
});

it('A key that is too weak for OpenSSL is reported as a fault', async () => {
  const publicExponent = new Uint8Array([1, 0, 1]);
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 512, publicExponent };
  const weak = await issue('weak', { algorithm });
  const { faults } = await load({ certificate: weak.certificate, privateKey: weak.key });
  expect(faults).toMatchObject([
    { message: expect.stringMatching(/OpenSSL does not accept the certificate and key \(ERR_/) },
  ]);
});

describe('Dates of certificates', () => {
  const DAY = 86_400_000;
  const START = Date.UTC(2030, 0, 1);
  const END = Date.UTC(2030, 5, 1);
  const certificate = (subject = 'a', from = START, to = END): Promise<Issued> =>
    issue(subject, { notBefore: new Date(from), notAfter: new Date(to) });

  let issued: Issued;
  beforeAll(async () => {
    issued = await certificate();
  });

  it.each([
    [
      'a millisecond before notBefore',
      START - 1,
      /is not valid before 2030-01-01T00:00:00Z; this machine's clock says 2029-12-31T23:/,
    ],
    ['at notBefore', START, undefined],
    ['a millisecond before notAfter', END - 1, undefined],
    [
      'at notAfter',
      END,
      /"CN=a" \(SHA-256 [\w:]+\), which expired on 2030-06-01T00:00:00Z.*Check this machine.s clock/,
    ],
  ])(
    'validity is checked to the millisecond, for a certificate and for a chain: %s',
    async (_, now, says) => {
      const own = { certificate: issued.certificate, privateKey: issued.key };
      const chain = { chain: issued.certificate };
      for (const [pems, begins] of [
        [own, 'the value holds the certificate "CN=a"'],
        [chain, 'the value holds no certificate that is valid now: "CN=a"'],
      ] as const) {
        const { faults } = await load(pems, now);
        expect(faults.map(({ message }) => message)).toEqual(says ? [expect.stringMatching(says)] : []);
        expect(faults.map(({ message }) => message.slice(0, begins.length))).toEqual(says ? [begins] : []);
      }
    },
  );

  it('a chain is accepted if one of its certificates is valid now', async () => {
    const chain = await Promise.all([
      certificate('over', START - DAY, START),
      certificate('early', END, END + DAY),
      certificate('valid', START, START + DAY),
    ]);
    const pems = { chain: chain.map((each) => each.certificate).join('') };
    expect((await load(pems, START)).faults).toEqual([]);
  });

  it.each([
    ['2 two days before the end', END - 2 * DAY, 2],
    ['0 a millisecond before the end', END - 1, 0],
    ['0 at the end', END, 0],
    ['-1 a millisecond after the end', END + 1, -1],
  ])('daysLeft() returns %s', (_, now, days) => {
    expect(daysLeft({ validTo: new Date(END) }, now)).toBe(days);
  });
});

describe('The type of a key', () => {
  it.each<[string, KeyObject, boolean]>([
    ['RSA', generateKeyPairSync('rsa', { modulusLength: 1_024 }).privateKey, false],
    ['RSA-PSS', generateKeyPairSync('rsa-pss', { modulusLength: 1_024 }).privateKey, false],
    ['DSA', generateKeyPairSync('dsa', { modulusLength: 1_024, divisorLength: 160 }).privateKey, true],
    ['Ed25519', generateKeyPairSync('ed25519').privateKey, false],
    ['Ed448', generateKeyPairSync('ed448').privateKey, false],
    ...(
      [
        ['P-224', 'secp224r1', true],
        ['P-256', 'prime256v1', false],
        ['P-384', 'secp384r1', false],
        ['P-521', 'secp521r1', false],
        ['secp256k1', 'secp256k1', true],
        ['prime192v1', 'prime192v1', true],
        ['sect233k1', 'sect233k1', true],
        ['brainpoolP256r1', 'brainpoolP256r1', false],
      ] as const
    ).map(([type, namedCurve, isNever]): [string, KeyObject, boolean] => [
      type,
      generateKeyPairSync('ec', { namedCurve }).privateKey,
      isNever,
    ]),
  ])(
    'keyTypeOf() returns %s, and isUnsupportedInTls13() says whether TLS 1.3 can send such a certificate',
    (type, key, isNever) => {
      expect(keyTypeOf(key)).toBe(type);
      expect(isUnsupportedInTls13(type)).toBe(isNever);
    },
  );

  it.each<[string, KeyObject, RegExp]>([
    ['RSA-PSS', generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey, /: RSA-PSS\./],
    ['Ed448', generateKeyPairSync('ed448').privateKey, /: Ed448\./],
    ['secp256k1', generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey, /: secp256k1\./],
    [
      'Brainpool',
      generateKeyPairSync('ec', { namedCurve: 'brainpoolP256r1' }).privateKey,
      /: a Brainpool curve\./,
    ],
    ['a kind without a name', generateKeyPairSync('ed25519').privateKey, /that Bun 1\.4\.5 does not know\. /],
  ])('the fault of a key that Bun does not know names its kind: %s', (_, key, words) => {
    const written = key.export({ type: 'pkcs8', format: 'pem' }).toString();
    const fault = describeUnknownAlgorithm(written, { ...process.versions, bun: '1.4.5' });
    expect(fault).toMatch(
      /^holds a key of an algorithm that Bun 1\.4\.5 does not know.* with Node, or use a/,
    );
    expect(fault).toMatch(words);
    expect(describeUnknownAlgorithm(written)).toMatch(
      /that this Node does not know \(OpenSSL .*a newer Node/,
    );
  });

  it('an identity has the type of its key, or none if it has no key', async () => {
    const pems = { certificate: app.certificate, privateKey: app.key, chain: authority.chain };
    expect((await loadIdentity(tlsSettings(pems))).identity?.keyType).toBe('P-256');
    expect((await loadIdentity(tlsSettings({ chain: authority.chain }))).identity?.keyType).toBeUndefined();
  });
});
