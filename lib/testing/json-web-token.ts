import { generateKeyPair, sign, verify, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

/** A pair of keys for ES256. */
export interface SigningKeys {
  privateKey: KeyObject;
  publicKey: KeyObject;
}

const HEADER = { alg: 'ES256', typ: 'at+jwt' };

export function generateSigningKeys(): Promise<SigningKeys> {
  return promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
}

/** An access token of RFC 9068, signed with ES256 (RFC 7518, 3.4). */
export function signToken(claims: object, key: KeyObject): string {
  const signed = `${encode(HEADER)}.${encode(claims)}`;
  return `${signed}.${sign('sha256', Buffer.from(signed), ieee(key)).toString('base64url')}`;
}

/** The claims; undefined where the token is none of those that `signToken` makes with this pair. Dates are not checked. */
export function readToken(token: string, key: KeyObject): Record<string, unknown> | undefined {
  const [header, payload, signature, ...rest] = token.split('.');
  if (header !== encode(HEADER) || !payload || !signature || rest.length > 0) return undefined;
  const signed = Buffer.from(`${header}.${payload}`);
  if (!verify('sha256', signed, ieee(key), Buffer.from(signature, 'base64url'))) return undefined;
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
}

/** JSON Web Tokens have the two numbers of the signature one after the other, not in DER. */
function ieee(key: KeyObject) {
  return { key, dsaEncoding: 'ieee-p1363' } as const;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
