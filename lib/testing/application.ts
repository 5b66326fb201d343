import { randomBytes, randomUUID } from 'node:crypto';

/** The application as the service knows it: its credentials, as the developer portal would show them. */
export class RegisteredApplication {
  readonly clientId: string;
  readonly appToken: string;
  #clientSecret: string;

  constructor(given: { clientId?: string; clientSecret?: string; appToken?: string }) {
    this.clientId = given.clientId ?? randomUUID();
    this.appToken = given.appToken ?? `app-${randomBytes(18).toString('base64url')}`;
    this.#clientSecret = given.clientSecret ?? makeSecret();
  }

  get clientSecret(): string {
    return this.#clientSecret;
  }

  /** Puts another secret in place; the one before is void at once (specification 5.4.4). */
  rotateClientSecret(secret = makeSecret()): string {
    this.#clientSecret = secret;
    return secret;
  }
}

/** Ends in characters that arrive changed when a client forgets to form-encode. */
function makeSecret(): string {
  return `${randomBytes(24).toString('base64url')}+/=&%`;
}
