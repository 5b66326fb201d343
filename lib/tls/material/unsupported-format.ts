import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';

export type Purpose = 'certificate' | 'key' | 'chain';

/** A format that the module does not read, and how to convert it. */
export interface UnsupportedFormat {
  what: string;
  remedy: string;
  /** It is a private key. */
  secret?: boolean;
}

interface Format extends UnsupportedFormat {
  /** The label of its PEM block. */
  label?: RegExp;
  /** Whether bytes that are not PEM are of this format. */
  fits?: (bytes: Buffer) => boolean;
}

/** The converted file, and what `openssl pkcs12` takes out of an archive. */
const OUTPUT = {
  certificate: { out: 'certificate.pem', parts: '-clcerts -nokeys' },
  key: { out: 'private-key.pem', parts: '-nocerts -nodes' },
  chain: { out: 'chain.pem', parts: '-cacerts -nokeys' },
} as const satisfies Record<Purpose, object>;

/** The first that fits counts. `{file}`, `{out}`, `{parts}` and `{form}`, the switch for DER, are filled in. */
const FORMATS: readonly Format[] = [
  {
    what: 'a private key in OpenSSH format',
    secret: true,
    label: /^OPENSSH PRIVATE KEY$/,
    remedy:
      'Convert it: cp {file} {out} && ssh-keygen -p -m PEM -f {out} (then openssl pkey -in {out} -noout reads it).',
  },
  {
    what: 'a private key in DER (binary) form',
    secret: true,
    fits: (bytes) =>
      (['pkcs8', 'pkcs1', 'sec1'] as const).some((type) =>
        parses(() => createPrivateKey({ key: bytes, format: 'der', type })),
      ),
    remedy: 'Convert it: openssl pkey -inform DER -in {file} -out {out}',
  },
  {
    what: 'an encrypted private key in DER (binary) form',
    secret: true,
    // RFC 8018: 1.2.840.113549.1.5.x, the schemes that encrypt a PKCS#8 key.
    fits: (bytes) => beginsWith(contentOf(contentOf(bytes)), '06092a864886f70d0105'),
    remedy: 'Convert it: openssl pkcs8 -inform DER -in {file} -out {out}',
  },
  {
    what: 'a public key',
    label: /^(RSA )?PUBLIC KEY$/,
    fits: (bytes) => parses(() => createPublicKey({ key: bytes, format: 'der', type: 'spki' })),
    remedy:
      'Use the private key it belongs to, or the certificate (openssl pkey -pubin {form}-in {file} -text -noout shows which it is).',
  },
  {
    what: 'a certificate request (CSR)',
    label: /^(NEW )?CERTIFICATE REQUEST$/,
    // RFC 2986, 4.1: CertificationRequestInfo begins with version INTEGER 0.
    fits: (bytes) => beginsWith(contentOf(contentOf(bytes)), '020100'),
    remedy:
      'Use the certificate that was issued for it (openssl req {form}-in {file} -noout -subject shows for whom).',
  },
  {
    what: 'a certificate in DER (binary) form',
    fits: (bytes) => parses(() => new X509Certificate(bytes)),
    remedy: 'Convert it: openssl x509 -inform DER -in {file} -out {out}',
  },
  {
    what: 'a PKCS#7 (.p7b) bundle',
    label: /^(PKCS7|CMS)$/,
    // 1.2.840.113549.1.7.2, signedData.
    fits: (bytes) => beginsWith(contentOf(bytes), '06092a864886f70d010702'),
    remedy: 'Convert it: openssl pkcs7 {form}-print_certs -in {file} -out {out}',
  },
  {
    what: 'a PKCS#12 (.p12, .pfx) archive',
    // RFC 7292, 4: version INTEGER 3, then a SEQUENCE.
    fits: (bytes) => beginsWith(contentOf(bytes), '02010330'),
    remedy: 'Convert it: openssl pkcs12 -in {file} {parts} -out {out}',
  },
];

/** Names a PEM block that is neither certificate nor private key. `file` is its name in the command. */
export function unsupportedBlock(label: string, purpose: Purpose, file: string): UnsupportedFormat {
  const format = FORMATS.find((each) => each.label?.test(label));
  if (format) return describe(format, purpose, file, '');
  const expected = purpose === 'key' ? 'PRIVATE KEY' : 'CERTIFICATE';
  const shown = label.replace(/[^\w .]/g, '?').slice(0, 40);
  return {
    what: `a block labelled "${shown}" (which is no ${expected.toLowerCase()})`,
    remedy: `It should begin with -----BEGIN ${expected}-----: download it anew from the developer portal, or take that block out.`,
  };
}

/** Names bytes that are not PEM: DER, PKCS#7, PKCS#12. Undefined for an unknown format. */
export function unsupportedBytes(
  bytes: Buffer,
  purpose: Purpose,
  file: string,
): UnsupportedFormat | undefined {
  const format = FORMATS.find((each) => each.fits?.(bytes));
  return format && describe(format, purpose, file, '-inform DER ');
}

function describe(
  { what, secret, remedy }: Format,
  purpose: Purpose,
  file: string,
  form: string,
): UnsupportedFormat {
  const values = { file, form, ...OUTPUT[purpose] };
  return { what, secret, remedy: remedy.replace(/\{(\w+)\}/g, (_, key: keyof typeof values) => values[key]) };
}

/** The content of a DER SEQUENCE: after its tag and length (X.690, 8.1.3). Empty for anything else. */
function contentOf(bytes: Buffer): Buffer {
  const [tag, length = 0] = bytes;
  if (tag !== 0x30) return Buffer.alloc(0);
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
