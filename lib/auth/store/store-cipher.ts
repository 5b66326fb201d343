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
import { MAX_ENTRY_LENGTH } from '../../config/token-cache.options.js';

/** The format of keys and values. Entries of another format are not found, or do not open. */
const FORMAT = 'v1';
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Names and encrypts the entries of a shared store for processes with the same client secret. Its keys come from the secret
 * (HKDF-SHA-256, RFC 5869), one for names and one for values (AES-256-GCM). After a rotation the entries have other
 * names: replicas that still have the old secret do not overwrite those of replicas that have the new one.
 */
export class StoreCipher {
  readonly #nameKey: KeyObject;
  readonly #valueKey: KeyObject;

  constructor(secret: Secret) {
    this.#nameKey = derive(secret, 'names');
    this.#valueKey = derive(secret, 'values');
  }

  /** The key of an entry. Without the secret, it does not show what the entry is for. */
  nameOf(...parts: readonly (string | null)[]): string {
    const hash = createHmac('sha256', this.#nameKey).update(JSON.stringify(parts)).digest('base64url');
    // In braces: Redis Cluster keeps all keys with this hash together.
    return `token:${FORMAT}:{${hash}}`;
  }

  seal(text: string, name: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#valueKey, nonce).setAAD(Buffer.from(name));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${FORMAT}.${sealed.toString('base64url')}`;
  }

  /** @returns undefined if it was changed, moved from another name, or sealed with another secret */
  open(value: unknown, name: string): string | undefined {
    if (typeof value !== 'string' || value.length > MAX_ENTRY_LENGTH || !value.startsWith(`${FORMAT}.`))
      return undefined;
    const sealed = Buffer.from(value.slice(FORMAT.length + 1), 'base64url');
    if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv(CIPHER, this.#valueKey, sealed.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(name)).setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      const text = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    } catch {
      return undefined;
    }
  }
}

function derive(secret: Secret, purpose: string): KeyObject {
  const info = `nestjs-service token store ${FORMAT} ${purpose}`;
  return createSecretKey(Buffer.from(hkdfSync('sha256', secret.reveal(), '', info, KEY_BYTES)));
}
