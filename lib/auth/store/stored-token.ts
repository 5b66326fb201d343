import { parseJson } from '../../exchange/decode.js';
import { expiryMargin, LIFELESS_MS, type TokenGrant } from '../access-token.js';
import { type TokenCredentials } from '../endpoint/refused-secrets.js';
import { type StoreCipher } from './store-cipher.js';

/** By how much the clocks of two machines may differ, in milliseconds. */
const CLOCK_TOLERANCE_MS = 1_000;

/** Whose tokens these are; part of an entry's name. The certificate, as tokens may be bound to it (RFC 8705). */
export type TokenOwner = Omit<TokenCredentials, 'secret'>;

/** The entry of one scope in a shared store. */
export class StoredToken {
  readonly key: string;
  readonly lockKey: string;
  /** The key of the entry that says when a process last worked on a request for the token. */
  readonly signKey: string;
  readonly #scope: string;
  readonly #cipher: StoreCipher;

  constructor(cipher: StoreCipher, scope: string, { tokenUrl, clientId, fingerprint256 }: TokenOwner) {
    this.#cipher = cipher;
    this.#scope = scope;
    this.key = cipher.nameOf(tokenUrl, clientId, scope, fingerprint256 ?? null);
    this.lockKey = `${this.key}:lock`;
    this.signKey = `${this.key}:sign`;
  }

  /** @param now the wall clock, in milliseconds */
  writeSign(now: number): string {
    return this.#cipher.seal(String(now), this.signKey);
  }

  /** @returns milliseconds since then; Infinity if it does not open or is from the future */
  readSign(value: unknown, now: number): number {
    const ageMs = now - Number(this.#cipher.open(value, this.signKey) ?? -Infinity);
    return ageMs >= -CLOCK_TOLERANCE_MS ? Math.max(0, ageMs) : Infinity;
  }

  /** @param issuedAt by the wall clock, in milliseconds */
  write(grant: TokenGrant, issuedAt: number): { value: string; ttlMs: number } {
    const { scope, accessToken, expiresIn: lifetimeS } = grant;
    const contents: Contents = { scope, accessToken, issuedAt, lifetimeS };
    return {
      value: this.#cipher.seal(JSON.stringify(contents), this.key),
      ttlMs: Math.floor(lifetimeS * 1000 - expiryMargin(lifetimeS * 1000)) || LIFELESS_MS,
    };
  }

  /**
   * @param now the wall clock, in milliseconds
   * @returns undefined if it does not open, has expired, or is of another scope
   */
  read(value: unknown, now: number): TokenGrant | undefined {
    const text = this.#cipher.open(value, this.key);
    const contents = text === undefined ? undefined : (parseJson(text) as Contents | undefined);
    if (contents?.scope !== this.#scope) return undefined;
    const { scope, accessToken, issuedAt, lifetimeS } = contents;
    const ageMs = Math.max(0, now - issuedAt);
    // One without a life is still in the store, so its second is not over.
    if (lifetimeS > 0 && lifetimeS * 1000 <= ageMs) return undefined;
    return { accessToken, scope, expiresIn: lifetimeS, ageMs };
  }
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
