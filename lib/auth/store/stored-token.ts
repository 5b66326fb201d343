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
import { ServiceTokenError, type TokenErrorDetails } from '../../errors/index.js';
import { parseJson } from '../../exchange/decode.js';
import { expiryMargin, LIFELESS_MS, type TokenCredentials, type TokenGrant } from '../access-token.js';

/** The format of keys and values. Entries of another format are not found, or do not open. */
const FORMAT = 'v1';
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MAX_FAILURE_AGE_MS = 5_000;

/** Whose tokens these are; part of an entry's name. The certificate, as tokens may be bound to it (RFC 8705). */
export type TokenOwner = Omit<TokenCredentials, 'secret'>;

/**
 * The keys for names and values, from the client secret (HKDF-SHA-256, RFC 5869). After a rotation the entries have other
 * names: replicas that still have the old secret do not overwrite those of replicas that have the new one.
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

/** What an entry holds. Only a process with the client secret could have written it. */
interface Contents {
  scope: string;
  accessToken: string;
  /** By the wall clock of the writer, in milliseconds. */
  issuedAt: number;
  /** Seconds; 0: without a life. */
  lifetimeS: number;
}

/** A failure of the token endpoint, in place of the sign of a request. */
interface FailureContents {
  failure: TokenErrorDetails;
  /** By the wall clock of the writer, in milliseconds. */
  failedAt: number;
}

/** The entry of one scope in a shared store, for processes with the same client secret. Its value is bound to its key. */
export class StoredToken {
  readonly key: string;
  readonly lockKey: string;
  /** Has an id of the last request for it. */
  readonly signKey: string;
  readonly #keys: StoreKeys;

  constructor(
    keys: StoreKeys,
    readonly scope: string,
    { tokenUrl, clientId, fingerprint256 }: TokenOwner,
  ) {
    this.#keys = keys;
    const parts = JSON.stringify([tokenUrl, clientId, scope, fingerprint256 ?? null]);
    // In braces: Redis Cluster keeps all keys with this hash together.
    this.key = `token:${FORMAT}:{${createHmac('sha256', keys.names).update(parts).digest('base64url')}}`;
    this.lockKey = `${this.key}:lock`;
    this.signKey = `${this.key}:sign`;
  }

  /**
   * @param now the wall clock, in milliseconds
   * @returns a `ttlMs` that is not above 0 if the token has ended, or soon will
   */
  write({ scope, accessToken, expiresIn: lifetimeS }: TokenGrant, now: number, ageMs = 0) {
    return {
      value: this.#seal({ scope, accessToken, issuedAt: now - ageMs, lifetimeS }),
      ttlMs:
        lifetimeS > 0 ? Math.floor(lifetimeS * 1000 - expiryMargin(lifetimeS * 1000) - ageMs) : LIFELESS_MS,
    };
  }

  /**
   * @param now the wall clock, in milliseconds
   * @returns undefined if it does not open, has expired, or is of another scope
   */
  read(value: string | undefined, now: number): TokenGrant | undefined {
    const contents = this.#open(value);
    if (!contents || 'failure' in contents || contents.scope !== this.scope) return undefined;
    const { scope, accessToken, issuedAt, lifetimeS } = contents;
    const ageMs = Math.max(0, now - issuedAt);
    // One without a life is still in the store, so its second is not over.
    if (lifetimeS > 0 && lifetimeS * 1000 <= ageMs) return undefined;
    return { accessToken, scope, expiresIn: lifetimeS, ageMs };
  }

  /**
   * The error that the endpoint has answered with. It holds no secret.
   * @param now the wall clock, in milliseconds
   */
  writeFailure(error: ServiceTokenError, now: number): string {
    return this.#seal({ failure: { ...error, message: error.message }, failedAt: now });
  }

  /**
   * @param now the wall clock, in milliseconds
   * @returns undefined if it is none, does not open, or is of long ago: a store may keep it for ever
   */
  readFailure(value: string | undefined, now: number): ServiceTokenError | undefined {
    const contents = this.#open(value);
    if (!contents || !('failure' in contents) || Math.abs(now - contents.failedAt) > MAX_FAILURE_AGE_MS)
      return undefined;
    return new ServiceTokenError({ ...contents.failure, scope: this.scope });
  }

  #seal(contents: Contents | FailureContents): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#keys.values, nonce).setAAD(Buffer.from(this.key));
    const text = cipher.update(JSON.stringify(contents), 'utf8');
    const sealed = Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()]);
    return `${FORMAT}.${sealed.toString('base64url')}`;
  }

  /** @returns undefined if it was changed, moved from another key, or sealed with another secret */
  #open(value: unknown): Contents | FailureContents | undefined {
    if (typeof value !== 'string' || !value.startsWith(`${FORMAT}.`)) return undefined;
    const sealed = Buffer.from(value.slice(FORMAT.length + 1), 'base64url');
    try {
      const decipher = createDecipheriv(CIPHER, this.#keys.values, sealed.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(this.key)).setAuthTag(sealed.subarray(-TAG_BYTES));
      const text = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
      return parseJson(Buffer.concat([text, decipher.final()]).toString('utf8')) as
        Contents | FailureContents | undefined;
    } catch {
      return undefined;
    }
  }
}
