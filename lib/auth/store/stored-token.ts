import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { type Secret } from '../../config/secret.js';
import { parseJson } from '../../exchange/response.js';
import { expiryMargin, LIFELESS_MS, type TokenGrant, type TokenOwner } from '../access-token.js';

/** The version of keys and values. Entries of another version are not found, or cannot be decrypted. */
const FORMAT = 'v1';
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The cryptographic keys for the names and values of entries, derived from the client secret with HKDF-SHA-256
 * (https://www.rfc-editor.org/rfc/rfc5869). After a rotation of the secret the entries have other names, so that replicas with
 * the old secret do not overwrite the entries of replicas with the new one.
 */
export class StoreKeys {
  readonly names: KeyObject;
  readonly values: KeyObject;

  constructor(readonly secret: Secret) {
    this.names = derive(secret, 'names');
    this.values = derive(secret, 'values');
  }
}

function derive(secret: Secret, purpose: string): KeyObject {
  const info = `nestjs-service token store ${FORMAT} ${purpose}`;
  return createSecretKey(Buffer.from(hkdfSync('sha256', secret.reveal(), '', info, KEY_BYTES)));
}

/** The contents of an entry. Only a process with the client secret can write them. */
interface Contents {
  scope: string;
  accessToken: string;
  /** Milliseconds of the writer's wall clock. */
  issuedAt: number;
  /** Seconds; 0 if the endpoint gave no lifetime. */
  lifetimeS: number;
}

/**
 * The entry of one scope in a shared store, which all processes with the same client secret can read. The value is encrypted and
 * bound to its key, so that it cannot be moved to another entry.
 */
export class StoredToken {
  readonly key: string;
  readonly lockKey: string;
  readonly #keys: StoreKeys;

  constructor(
    keys: StoreKeys,
    readonly scope: string,
    { tokenUrl, clientId, fingerprint256 }: TokenOwner,
  ) {
    this.#keys = keys;
    const parts = JSON.stringify([tokenUrl, clientId, scope, fingerprint256 ?? null]);
    // Redis Cluster keeps all keys with the same text in braces on one node.
    this.key = `token:${FORMAT}:{${createHmac('sha256', keys.names).update(parts).digest('base64url')}}`;
    this.lockKey = `${this.key}:lock`;
  }

  /**
   * @param now the wall clock, in milliseconds
   * @returns the value and its TTL. The TTL is 0 or less if the token has expired or soon will
   */
  encode({ scope, accessToken, expiresIn: lifetimeS }: TokenGrant, now: number, ageMs = 0) {
    return {
      value: this.#encrypt({ scope, accessToken, issuedAt: now - ageMs, lifetimeS }),
      ttlMs:
        lifetimeS > 0 ? Math.floor(lifetimeS * 1000 - expiryMargin(lifetimeS * 1000) - ageMs) : LIFELESS_MS,
    };
  }

  /**
   * @param now the wall clock, in milliseconds
   * @returns undefined if the value cannot be decrypted, has expired, or belongs to another scope
   */
  decode(value: string | undefined, now: number): TokenGrant | undefined {
    const contents = this.#decrypt(value);
    if (contents?.scope !== this.scope) return undefined;
    const { scope, accessToken, issuedAt, lifetimeS } = contents;
    const ageMs = Math.max(0, now - issuedAt);
    // A token without a lifetime expires by the TTL of its entry, so it has not expired yet.
    if (lifetimeS > 0 && lifetimeS * 1000 <= ageMs) return undefined;
    return { accessToken, scope, expiresIn: lifetimeS, ageMs };
  }

  #encrypt(contents: Contents): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#keys.values, nonce).setAAD(Buffer.from(this.key));
    const text = cipher.update(JSON.stringify(contents), 'utf8');
    const encrypted = Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()]);
    return `${FORMAT}.${encrypted.toString('base64url')}`;
  }

  /** @returns undefined if the value was changed, moved from another key, or encrypted with another secret */
  #decrypt(value: unknown): Contents | undefined {
    if (typeof value !== 'string' || !value.startsWith(`${FORMAT}.`)) return undefined;
    const encrypted = Buffer.from(value.slice(FORMAT.length + 1), 'base64url');
    try {
      const decipher = createDecipheriv(CIPHER, this.#keys.values, encrypted.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(this.key)).setAuthTag(encrypted.subarray(-TAG_BYTES));
      const text = decipher.update(encrypted.subarray(NONCE_BYTES, -TAG_BYTES));
      return parseJson(Buffer.concat([text, decipher.final()]).toString('utf8')) as Contents | undefined;
    } catch {
      return undefined;
    }
  }
}
