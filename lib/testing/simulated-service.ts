import { randomBytes, randomUUID } from 'node:crypto';
import { type ServiceEnvironment } from '../config/options.js';
import { AnswerBook, type SimulatedCustomer } from './answer-book.js';
import { FaultBook } from './faults.js';
import { DEFAULT_HEADERS } from './module-options.js';
import { RequestLog } from './request-log.js';
import { serverNamesOf } from './server-names.js';
import { type CertificateRefusal, type SimulatorOptions } from './simulator.options.js';
import { TokenIssuer } from './token-issuer.js';

/** The state that the six servers share: the application, its customers and tokens, faults, and recorded requests. */
export class SimulatedService {
  /** The names in the server certificate. The first is the host in all addresses. */
  readonly serverNames: readonly string[];
  readonly issuer: TokenIssuer;
  /** How many requests are kept, and how many refusals. */
  readonly maxRequests: number;
  readonly log: RequestLog;
  readonly faults = new FaultBook();
  readonly answers = new AnswerBook();
  /** The SHA-256 fingerprints of revoked client certificates. */
  readonly revoked = new Set<string>();
  readonly refusals: CertificateRefusal[] = [];
  readonly customers: SimulatedCustomer[] = [];
  /** The customers of each environment, by their `app_user_id`. */
  readonly users = {
    production: new Map<string, SimulatedCustomer>(),
    sandbox: new Map<string, SimulatedCustomer>(),
  } satisfies Record<ServiceEnvironment, unknown>;
  readonly clientId: string;
  readonly appToken: string;
  readonly appTokenHeader: string;
  readonly webhookSecret: string;
  readonly webhookHeader: string;
  readonly oauthEnabled: boolean;
  /** The lifetime in seconds of tokens that are issued from now on. */
  tokenLifetime: number;
  clientSecret: string;

  /** @param chain the certificates (PEM) by which client certificates are verified: the service's public chain */
  constructor(
    readonly options: SimulatorOptions,
    readonly chain: string,
  ) {
    this.serverNames = serverNamesOf(options);
    this.issuer = new TokenIssuer(options.tokenClaims);
    this.maxRequests = options.maxRequests ?? 50_000;
    this.log = new RequestLog(this.maxRequests);
    this.clientId = options.clientId ?? randomUUID();
    this.appToken = options.appToken ?? this.clientId;
    this.appTokenHeader = options.appTokenHeader ?? DEFAULT_HEADERS.appTokenHeader;
    this.webhookSecret = options.webhookSecret ?? makeSecret();
    this.webhookHeader = options.webhookHeader ?? DEFAULT_HEADERS.webhookHeader;
    this.oauthEnabled = options.oauth?.enabled ?? true;
    this.tokenLifetime = options.tokenLifetime ?? 3600;
    this.clientSecret = options.clientSecret ?? makeSecret();
  }

  /** The old secret is refused at once (docs/service.md#oauth). */
  rotateClientSecret(secret = makeSecret()): string {
    this.clientSecret = secret;
    return secret;
  }
}

/** The last characters arrive changed if a client does not form-encode the secret. */
function makeSecret(): string {
  return `${randomBytes(24).toString('base64url')}+/=&%`;
}
