import { type AccessToken, type IdentityView, ServiceAuthService } from '../../auth/index.js';
import { type WaitOptions } from '../../auth/cache/waiting-callers.js';
import { type CallCount } from '../../auth/service-auth.service.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type CertificateSummary } from '../../errors/index.js';
import { type IdentityStatus } from '../../tls/index.js';
import { daysLeft } from '../../tls/certificate-summary.js';
import { defaultToken } from './default-answers.js';
import { type ModuleStub } from './module-stub.js';

const HEADERS = Object.freeze({ Authorization: `Bearer ${defaultToken('api').accessToken}` });

/** ServiceAuthService with its own checks, and tokens that no endpoint gave. */
export class AuthDouble extends ServiceAuthService {
  readonly #stub: ModuleStub;

  constructor(stub: ModuleStub, options: ResolvedOptions, identity: IdentityView, calls: CallCount) {
    super(options, identity, undefined, calls);
    this.#stub = stub;
  }

  override tokenFor(scope: string, { signal }: WaitOptions): Promise<AccessToken> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    return Promise.resolve(defaultToken(scope));
  }

  override headers(): Promise<Readonly<Record<string, string>>> {
    return Promise.resolve(HEADERS);
  }

  override peekHeaders(): Readonly<Record<string, string>> {
    return HEADERS;
  }

  override get hasApiToken(): boolean {
    return this.#stub.doubles.auth?.getApiToken === undefined;
  }

  override async requestApiTokenOnce(): Promise<void> {
    await this.getApiToken();
  }

  override invalidate(accessToken: string): void {
    this.#stub.record('auth', 'invalidate', [accessToken]);
    this.#stub.doubles.auth?.invalidate?.(accessToken);
  }

  override get certificate(): CertificateSummary | undefined {
    return this.#stub.doubles.auth?.certificate;
  }

  override get identityStatus(): IdentityStatus {
    const { identityStatus } = this.#stub.doubles.auth ?? {};
    const { certificate } = this;
    if (identityStatus || !certificate) return identityStatus ?? { healthy: true };
    return { healthy: true, certificate, daysLeft: daysLeft(certificate, Date.now()) };
  }
}
