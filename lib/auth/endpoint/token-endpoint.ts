import { type Clock } from '../../config/clock.js';
import { type Secret } from '../../config/secret.js';
import { ServiceTokenError } from '../../errors/index.js';
import { type TokenGrant, type TokenRequestContext, type TokenSource } from '../access-token.js';
import { type ClientSecret, type SecretReading } from './client-secret.js';
import { RefusedSecrets } from './refused-secrets.js';
import { isCredentialRefusal } from './token-errors.js';
import { TokenPost, type TokenPostOptions } from './token-post.js';

/** While its secret is known to be refused, a source is not asked more often than that. */
const SOURCE_PAUSE_MS = 1_000;

interface TokenEndpointOptions extends TokenPostOptions {
  clientSecret: ClientSecret;
  clock: Clock;
}

/**
 * Requests tokens with the client secret. A refused one is read again from its source, and another one is tried at
 * once. Knows nothing of caching, but remembers a refused secret for 10 s.
 */
export class TokenEndpoint implements TokenSource {
  readonly #options: TokenEndpointOptions;
  readonly #post: TokenPost;
  readonly #refused: RefusedSecrets;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
    this.#post = new TokenPost(options);
    this.#refused = new RefusedSecrets(options.clock);
  }

  /**
   * @param scope a checked one
   * @throws ServiceTokenError where the endpoint grants no token or answers in a way that breaks the specification;
   * ServiceConnectionError where there is no whole answer; ServiceCertificateError where it refuses our certificate
   */
  async request(scope: string, { signal, timeoutMs }: TokenRequestContext): Promise<TokenGrant> {
    const { clientSecret, clock, identity } = this.#options;
    const limits = { end: clock.monotonic() + timeoutMs, signal };
    const first = await this.#readSecret(scope);
    const certificate = identity?.certificate;
    const post = (secrets: [Secret, ...Secret[]]): Promise<TokenGrant> =>
      this.#post.send(scope, secrets, limits).catch((error: unknown) => {
        if (isRefusedSecret(error)) this.#refused.remember(secrets[0], scope, error, certificate);
        throw error;
      });
    try {
      return await post([first.secret]);
    } catch (error) {
      if (!isRefusedSecret(error) || !clientSecret.canChange) throw error;
      const second = await clientSecret.readAfter(first).catch(() => first);
      if (second.secret.reveal() === first.secret.reveal()) throw error;
      return await post([second.secret, first.secret]);
    }
  }

  async #readSecret(scope: string): Promise<SecretReading> {
    const { clientSecret, clock } = this.#options;
    const { last } = clientSecret;
    if (last && clock.monotonic() - last.at < SOURCE_PAUSE_MS) this.#throwIfRefused(last, scope);
    const reading = await clientSecret.read();
    this.#throwIfRefused(reading, scope);
    return reading;
  }

  #throwIfRefused({ secret }: SecretReading, scope: string): void {
    const refusal = this.#refused.find(secret, scope, this.#options.identity?.certificate);
    if (refusal) throw refusal;
  }
}

function isRefusedSecret(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && error.code === 'token_refused' && isCredentialRefusal(error);
}
