import { type Secret } from '../../config/secret.js';
import { ServiceTokenError } from '../../errors/index.js';
import { type TokenGrant, type TokenRequestContext, type TokenSource } from '../access-token.js';
import { type ClientSecret, RefusedSecrets } from './client-secret.js';
import { isCredentialRefusal } from './token-errors.js';
import { TokenPost, type TokenPostOptions } from './token-post.js';

interface TokenEndpointOptions extends TokenPostOptions {
  clientSecret: ClientSecret;
}

/**
 * Requests tokens with the client secret. A refused one is read again from its source, and another one is tried at
 * once. Knows nothing of caching.
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
    const first = await clientSecret.read();
    const certificate = identity?.certificate;
    const refusal = this.#refused.find(first, scope, certificate);
    if (refusal) throw refusal;
    const post = (secrets: [Secret, ...Secret[]]): Promise<TokenGrant> =>
      this.#post.send(scope, secrets, limits).catch((error: unknown) => {
        if (isRefusedSecret(error)) this.#refused.remember(secrets[0], scope, error, certificate);
        throw error;
      });
    try {
      return await post([first]);
    } catch (error) {
      if (!isRefusedSecret(error) || !clientSecret.canChange) throw error;
      const second = await clientSecret.readAfter(first).catch(() => first);
      if (second.reveal() === first.reveal()) throw error;
      return await post([second, first]);
    }
  }
}

function isRefusedSecret(error: unknown): error is ServiceTokenError {
  return error instanceof ServiceTokenError && error.code === 'token_refused' && isCredentialRefusal(error);
}
