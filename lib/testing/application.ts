import { randomBytes, randomUUID } from 'node:crypto';

/** The application's credentials, as the developer portal shows them. */
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

  /** Sets another secret. The old one is refused at once (specification 5.4.4). */
  rotateClientSecret(secret = makeSecret()): string {
    this.#clientSecret = secret;
    return secret;
  }
}

/** Ends in characters that arrive changed if a client does not form-encode them. */
function makeSecret(): string {
  return `${randomBytes(24).toString('base64url')}+/=&%`;
}
