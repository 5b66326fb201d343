import { type KeyObject } from 'node:crypto';

const CURVES: Readonly<Record<string, string>> = {
  secp224r1: 'P-224',
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
};

/** The type of a key, with the name of its curve: `RSA`, `RSA-PSS`, `Ed25519`, `P-256`, `secp256k1`. */
export function keyTypeOf({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject): string | undefined {
  const { namedCurve = 'EC' } = asymmetricKeyDetails ?? {};
  if (type === 'ec') return CURVES[namedCurve] ?? namedCurve;
  return type?.toUpperCase().replace('ED', 'Ed');
}

/**
 * Whether TLS 1.3 has no signature algorithm for keys of this type (https://www.rfc-editor.org/rfc/rfc8446#section-4.2.3). OpenSSL
 * then sends an empty list in place of the certificate and reports no error. Brainpool keys are supported: OpenSSL 3.5 and
 * later use them with each other.
 */
export function isUnsupportedInTls13(keyType = ''): boolean {
  return /^(DSA$|P-224$|SM2$|sec|prime|c2|wap-|Oakley)/.test(keyType);
}
