import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';

/** What an input is for. */
export type Purpose = 'certificate' | 'key' | 'chain';

/** A format that the module does not read: what it is, and how to convert it. */
export interface UnsupportedFormat {
  what: string;
  remedy: string;
  /** It is a private key. */
  secret?: boolean;
}

/** The parts of a converting command. */
interface Command {
  file: string;
  out: string;
  purpose: Purpose;
  /** The switch for input that is not PEM, or nothing. */
  form: '' | '-inform DER ';
}

const OUTPUT: Readonly<Record<Purpose, string>> = {
  certificate: 'certificate.pem',
  key: 'private-key.pem',
  chain: 'chain.pem',
};

const PKCS12_SWITCHES: Readonly<Record<Purpose, string>> = {
  certificate: '-clcerts -nokeys',
  key: '-nocerts -nodes',
  chain: '-cacerts -nokeys',
};

const FORMATS = {
  'openssh-key': {
    what: 'a private key in OpenSSH format',
    secret: true,
    remedy: ({ file, out }) =>
      `Convert it: cp ${file} ${out} && ssh-keygen -p -m PEM -f ${out} (then openssl pkey -in ${out} -noout reads it).`,
  },
  'der-key': {
    what: 'a private key in DER (binary) form',
    secret: true,
    remedy: ({ file, out }) => `Convert it: openssl pkey -inform DER -in ${file} -out ${out}`,
  },
  'encrypted-der-key': {
    what: 'an encrypted private key in DER (binary) form',
    secret: true,
    remedy: ({ file, out }) => `Convert it: openssl pkcs8 -inform DER -in ${file} -out ${out}`,
  },
  'public-key': {
    what: 'a public key',
    remedy: ({ file, form }) =>
      `Use the private key it belongs to, or the certificate (openssl pkey -pubin ${form}-in ${file} -text -noout shows which it is).`,
  },
  request: {
    what: 'a certificate request (CSR)',
    remedy: ({ file, form }) =>
      `Use the certificate that was issued for it (openssl req ${form}-in ${file} -noout -subject shows for whom).`,
  },
  'der-certificate': {
    what: 'a certificate in DER (binary) form',
    remedy: ({ file, out }) => `Convert it: openssl x509 -inform DER -in ${file} -out ${out}`,
  },
  'trusted-certificate': {
    what: "a certificate in OpenSSL's own TRUSTED format",
    remedy: ({ file, out }) => `Convert it: openssl x509 -in ${file} -out ${out}`,
  },
  crl: {
    what: 'a revocation list (CRL)',
    remedy: () => 'Put the certificate there instead.',
  },
  pkcs7: {
    what: 'a PKCS#7 (.p7b) bundle',
    remedy: ({ file, out, form }) => `Convert it: openssl pkcs7 ${form}-print_certs -in ${file} -out ${out}`,
  },
  pkcs12: {
    what: 'a PKCS#12 (.p12, .pfx) archive',
    remedy: ({ file, out, purpose }) =>
      `Convert it: openssl pkcs12 -in ${file} ${PKCS12_SWITCHES[purpose]} -out ${out}`,
  },
  'java-keystore': {
    what: 'a Java keystore',
    remedy: ({ file, out, purpose }) =>
      `Convert it: keytool -importkeystore -srckeystore ${file} -destkeystore store.p12 -deststoretype PKCS12, then openssl pkcs12 -in store.p12 ${PKCS12_SWITCHES[purpose]} -out ${out}`,
  },
} satisfies Record<string, { what: string; secret?: boolean; remedy: (command: Command) => string }>;

type FormatName = keyof typeof FORMATS;

const LABELS: Readonly<Record<string, FormatName>> = {
  'OPENSSH PRIVATE KEY': 'openssh-key',
  'CERTIFICATE REQUEST': 'request',
  'NEW CERTIFICATE REQUEST': 'request',
  'PUBLIC KEY': 'public-key',
  'RSA PUBLIC KEY': 'public-key',
  'TRUSTED CERTIFICATE': 'trusted-certificate',
  PKCS7: 'pkcs7',
  CMS: 'pkcs7',
  'X509 CRL': 'crl',
};

/** Names a PEM block that is neither certificate nor private key. `file` is its name in the command. */
export function unsupportedBlock(label: string, purpose: Purpose, file: string): UnsupportedFormat {
  const name = Object.hasOwn(LABELS, label) ? LABELS[label] : undefined;
  if (name) return describe(name, purpose, file, '');
  const expected = purpose === 'key' ? 'PRIVATE KEY' : 'CERTIFICATE';
  const shown = label.replace(/[^\w .]/g, '?').slice(0, 40);
  return {
    what: `a block labelled "${shown}" (which is no ${expected.toLowerCase()})`,
    remedy: `It should begin with -----BEGIN ${expected}-----: download it anew from the developer portal, or take that block out.`,
  };
}

/** Names bytes that are not PEM: DER, PKCS#12, a Java keystore. */
export function unsupportedBytes(
  bytes: Buffer,
  purpose: Purpose,
  file: string,
): UnsupportedFormat | undefined {
  const name = formatOfBytes(bytes);
  return name && describe(name, purpose, file, '-inform DER ');
}

function describe(
  name: FormatName,
  purpose: Purpose,
  file: string,
  form: Command['form'],
): UnsupportedFormat {
  const { remedy, ...format } = FORMATS[name];
  return { ...format, remedy: remedy({ file, out: OUTPUT[purpose], purpose, form }) };
}

/** What bytes are that are not PEM; undefined where it cannot be said. */
function formatOfBytes(bytes: Buffer): FormatName | undefined {
  if (bytes.length > 4 && bytes.readUInt32BE(0) === 0xfeedfeed) return 'java-keystore';
  // X.690, 8.9: all of the others are a SEQUENCE.
  if (bytes[0] !== 0x30) return undefined;
  if (parses(() => new X509Certificate(bytes))) return 'der-certificate';
  if (isKey(bytes)) return 'der-key';
  if (parses(() => createPublicKey({ key: bytes, format: 'der', type: 'spki' }))) return 'public-key';
  return byStructure(contentOf(bytes));
}

function byStructure(inner: Buffer): FormatName | undefined {
  // RFC 7292, 4: version INTEGER 3, then a SEQUENCE.
  if (beginsWith(inner, '02010330')) return 'pkcs12';
  // 1.2.840.113549.1.7.2, signedData.
  if (beginsWith(inner, '06092a864886f70d010702')) return 'pkcs7';
  if (inner[0] !== 0x30) return undefined;
  const first = contentOf(inner);
  // RFC 2986, 4.1: CertificationRequestInfo begins with version INTEGER 0.
  if (beginsWith(first, '020100')) return 'request';
  // RFC 8018: 1.2.840.113549.1.5.x, the schemes that encrypt a PKCS#8 key.
  return beginsWith(first, '06092a864886f70d0105') ? 'encrypted-der-key' : undefined;
}

function isKey(bytes: Buffer): boolean {
  return (['pkcs8', 'pkcs1', 'sec1'] as const).some((type) =>
    parses(() => createPrivateKey({ key: bytes, format: 'der', type })),
  );
}

/** The content of the outermost DER value: after its tag and length (X.690, 8.1.3). */
function contentOf(bytes: Buffer): Buffer {
  const length = bytes[1] ?? 0;
  return bytes.subarray(length < 0x80 ? 2 : 2 + (length & 0x7f));
}

function beginsWith(bytes: Buffer, hex: string): boolean {
  return bytes.subarray(0, hex.length / 2).toString('hex') === hex;
}

function parses(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}
