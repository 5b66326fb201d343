import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import { isUint8Array } from 'node:util/types';
import { type ServiceEnvironment } from '../config/options.js';
import { AnswerBook, type SimulatedCustomer } from './answer-book.js';
import { FaultBook } from './faults.js';
import { DEFAULT_BRAND } from './module-options.js';
import { RequestLog } from './request-log.js';
import {
  type AccessTokenRequest,
  type CertificateRefusal,
  type SimulatorOptions,
} from './simulator.options.js';
import { TokenIssuer } from './token-issuer.js';

/** How long the service waits for the response to a webhook. */
const WEBHOOK_TIMEOUT_MS = 10_000;

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
  readonly webhookAlgorithm: string;
  /** Undefined: the algorithm and an equals sign. */
  readonly webhookPrefix: string | undefined;
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
    this.appTokenHeader = options.appTokenHeader ?? DEFAULT_BRAND.appTokenHeader;
    this.webhookSecret = options.webhookSecret ?? makeSecret();
    this.webhookHeader = options.webhookHeader ?? DEFAULT_BRAND.webhookHeader;
    this.webhookAlgorithm = options.webhookAlgorithm ?? DEFAULT_BRAND.webhookAlgorithm;
    this.webhookPrefix = options.webhookPrefix;
    this.oauthEnabled = options.oauth?.enabled ?? true;
    this.tokenLifetime = options.tokenLifetime ?? 3600;
    this.clientSecret = options.clientSecret ?? makeSecret();
  }

  /** The old secret is refused at once (docs/service.md#oauth). */
  rotateClientSecret(secret = makeSecret()): string {
    this.clientSecret = secret;
    return secret;
  }

  issueToken({ environment, scope, lifetime, foreign }: AccessTokenRequest): string {
    return this.issuer.issue({
      environment: environment ?? 'production',
      clientId: this.clientId,
      scope: scope ?? 'api',
      lifetime: lifetime ?? this.tokenLifetime,
      foreign,
    });
  }

  /** Signs with node:crypto and not with the code of verifyWebhook(), so that tests find a mistake in that code. */
  sendWebhook(url: string, body: unknown, headers: Record<string, string>): Promise<Response> {
    const content = typeof body === 'string' || isUint8Array(body) ? body : JSON.stringify(body);
    const { webhookAlgorithm: algorithm, webhookPrefix: prefix = `${algorithm}=` } = this;
    const digest = createHmac(algorithm, this.webhookSecret).update(content).digest('hex');
    return fetch(url, {
      method: 'POST',
      body: content as string | Uint8Array<ArrayBuffer>,
      redirect: 'manual',
      signal: AbortSignal.timeout(WEBHOOK_TIMEOUT_MS),
      headers: {
        'content-type': 'application/json',
        // A keep-alive connection would delay app.close() at the end of a test.
        connection: 'close',
        [this.webhookHeader]: prefix + digest,
        ...headers,
      },
    });
  }
}

/** The last characters arrive changed if a client does not form-encode the secret. */
function makeSecret(): string {
  return `${randomBytes(24).toString('base64url')}+/=&%`;
}

/** The address on which a simulator listens by default. */
export const LOOPBACK = '127.0.0.1';
const ANY_ADDRESS = ['0.0.0.0', '::'];

type Reach = Pick<SimulatorOptions, 'host' | 'serverNames'>;

/**
 * Returns the names in the server certificate. The first is the host in all addresses of the simulator.
 *
 * @throws Error for an invalid host or name
 */
export function serverNamesOf({ host = LOOPBACK, serverNames = [] }: Reach): string[] {
  if (isIP(host) === 0) {
    throw new Error(
      `host (--host) must be an IP address, for example 0.0.0.0, not '${host}'. A host name belongs in serverNames (--san).`,
    );
  }
  const wrong = serverNames.find((name) => !isHost(name));
  if (wrong !== undefined) {
    throw new Error(
      `serverNames (--san) must be host names without https://, port or comma, not '${wrong}'.`,
    );
  }
  // 0.0.0.0 is an address to listen on, and clients cannot connect to it. So it is not a name of the server.
  const own = listensOnAll(host) ? [] : [host];
  return [...new Set([...serverNames, ...own, LOOPBACK, 'localhost', '::1'])];
}

/** Whether this is the address for listening on all interfaces: 0.0.0.0 or ::. */
export function listensOnAll(host: string): boolean {
  return ANY_ADDRESS.includes(host);
}

function isHost(name: string): boolean {
  const address = `https://${name}`;
  const isName = /^[\w.-]+$/.test(name) && URL.canParse(address);
  return isIP(name) > 0 || (isName && new URL(address).hostname === name.toLowerCase());
}
