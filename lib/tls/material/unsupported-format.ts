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

const convert = (command: string) => `Convert it: ${command}`;

/** Names a PEM block that is neither certificate nor private key. `file` is its name in the command. */
export function unsupportedBlock(label: string, purpose: Purpose, file: string): UnsupportedFormat {
  const out = OUTPUT[purpose];
  switch (label) {
    case 'OPENSSH PRIVATE KEY':
      return {
        what: 'a private key in OpenSSH format',
        secret: true,
        remedy: `${convert(`cp ${file} ${out} && ssh-keygen -p -m PEM -f ${out}`)} (then openssl pkey -in ${out} -noout reads it).`,
      };
    case 'CERTIFICATE REQUEST':
    case 'NEW CERTIFICATE REQUEST':
      return certificateRequest(file, '');
    case 'PUBLIC KEY':
    case 'RSA PUBLIC KEY':
      return publicKey(file, '');
    case 'TRUSTED CERTIFICATE':
      return {
        what: "a certificate in OpenSSL's own TRUSTED format",
        remedy: convert(`openssl x509 -in ${file} -out ${out}`),
      };
    case 'PKCS7':
    case 'CMS':
      return pkcs7(file, out, '');
    case 'X509 CRL':
      return { what: 'a revocation list (CRL)', remedy: 'Put the certificate there instead.' };
    default:
      return unknownBlock(label, purpose);
  }
}

function unknownBlock(label: string, purpose: Purpose): UnsupportedFormat {
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
  const out = OUTPUT[purpose];
  if (bytes.length > 4 && bytes.readUInt32BE(0) === 0xfeedfeed) {
    return {
      what: 'a Java keystore',
      remedy: `Convert it: keytool -importkeystore -srckeystore ${file} -destkeystore store.p12 -deststoretype PKCS12, then openssl pkcs12 -in store.p12 ${PKCS12_SWITCHES[purpose]} -out ${out}`,
    };
  }
  // X.690, 8.9: all of these are a SEQUENCE.
  if (bytes[0] !== 0x30) return undefined;
  if (parses(() => new X509Certificate(bytes))) {
    return {
      what: 'a certificate in DER (binary) form',
      remedy: convert(`openssl x509 -inform DER -in ${file} -out ${out}`),
    };
  }
  if (isDerKey(bytes)) {
    return {
      what: 'a private key in DER (binary) form',
      secret: true,
      remedy: convert(`openssl pkey -inform DER -in ${file} -out ${out}`),
    };
  }
  if (parses(() => createPublicKey({ key: bytes, format: 'der', type: 'spki' })))
    return publicKey(file, '-inform DER ');
  return byStructure(contentOf(bytes), purpose, file, out);
}

function byStructure(
  inner: Buffer,
  purpose: Purpose,
  file: string,
  out: string,
): UnsupportedFormat | undefined {
  // RFC 7292, 4: version INTEGER 3, then a SEQUENCE.
  if (inner.subarray(0, 4).equals(Buffer.from([2, 1, 3, 0x30]))) {
    return {
      what: 'a PKCS#12 (.p12, .pfx) archive',
      remedy: convert(`openssl pkcs12 -in ${file} ${PKCS12_SWITCHES[purpose]} -out ${out}`),
    };
  }
  // 1.2.840.113549.1.7.2, signedData.
  if (inner.subarray(0, 11).equals(Buffer.from('06092a864886f70d010702', 'hex'))) {
    return pkcs7(file, out, '-inform DER ');
  }
  if (inner[0] !== 0x30) return undefined;
  const first = contentOf(inner);
  // RFC 2986, 4.1: CertificationRequestInfo begins with version INTEGER 0.
  if (first.subarray(0, 3).equals(Buffer.from([2, 1, 0]))) return certificateRequest(file, '-inform DER ');
  // RFC 8018: 1.2.840.113549.1.5.x, the schemes that encrypt a PKCS#8 key.
  if (first.subarray(0, 10).equals(Buffer.from('06092a864886f70d0105', 'hex'))) {
    return {
      what: 'an encrypted private key in DER (binary) form',
      secret: true,
      remedy: convert(`openssl pkcs8 -inform DER -in ${file} -out ${out}`),
    };
  }
  return undefined;
}

function certificateRequest(file: string, form: string): UnsupportedFormat {
  return {
    what: 'a certificate request (CSR)',
    remedy: `Use the certificate that was issued for it (openssl req ${form}-in ${file} -noout -subject shows for whom).`,
  };
}

function publicKey(file: string, form: string): UnsupportedFormat {
  return {
    what: 'a public key',
    remedy: `Use the private key it belongs to, or the certificate (openssl pkey -pubin ${form}-in ${file} -text -noout shows which it is).`,
  };
}

function pkcs7(file: string, out: string, form: string): UnsupportedFormat {
  return {
    what: 'a PKCS#7 (.p7b) bundle',
    remedy: convert(`openssl pkcs7 ${form}-print_certs -in ${file} -out ${out}`),
  };
}

function isDerKey(bytes: Buffer): boolean {
  return (['pkcs8', 'pkcs1', 'sec1'] as const).some((type) =>
    parses(() => createPrivateKey({ key: bytes, format: 'der', type })),
  );
}

/** The content of the outermost DER value: after its tag and length (X.690, 8.1.3). */
function contentOf(bytes: Buffer): Buffer {
  const length = bytes[1] ?? 0;
  return bytes.subarray(length < 0x80 ? 2 : 2 + (length & 0x7f));
}

function parses(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}
