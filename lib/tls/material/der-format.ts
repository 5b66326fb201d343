import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';

export type BytesFormat =
  | 'java-keystore'
  | 'der-certificate'
  | 'der-key'
  | 'public-key'
  | 'pkcs12'
  | 'pkcs7'
  | 'request'
  | 'encrypted-der-key';

/** What bytes are that are not PEM; undefined where it cannot be said. */
export function formatOfBytes(bytes: Buffer): BytesFormat | undefined {
  if (bytes.length > 4 && bytes.readUInt32BE(0) === 0xfeedfeed) return 'java-keystore';
  // X.690, 8.9: all of the others are a SEQUENCE.
  if (bytes[0] !== 0x30) return undefined;
  if (parses(() => new X509Certificate(bytes))) return 'der-certificate';
  if (isKey(bytes)) return 'der-key';
  if (parses(() => createPublicKey({ key: bytes, format: 'der', type: 'spki' }))) return 'public-key';
  return byStructure(contentOf(bytes));
}

function byStructure(inner: Buffer): BytesFormat | undefined {
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
