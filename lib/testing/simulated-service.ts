import { randomBytes, randomUUID } from 'node:crypto';
import { type SimulatorOptions } from './simulator.options.js';
import { type TokenIssuer } from './token-issuer.js';

/** A customer created on the simulator. */
export interface SimulatedCustomer {
  customer_id: string;
  app_user_id: string;
  created_at: string;
}

/** What the servers answer from: the application as the developer portal shows it, its customers and its tokens. */
export class SimulatedService {
  readonly options: SimulatorOptions;
  readonly issuer: TokenIssuer;
  readonly clientId: string;
  readonly appToken: string;
  readonly appTokenHeader: string;
  readonly oauthEnabled: boolean;
  readonly customers: SimulatedCustomer[] = [];
  /** Seconds, of the tokens issued from now on. */
  tokenLifetime: number;
  clientSecret: string;

  constructor(options: SimulatorOptions, issuer: TokenIssuer) {
    this.options = options;
    this.issuer = issuer;
    this.clientId = options.clientId ?? randomUUID();
    this.appToken = options.appToken ?? `app-${randomBytes(18).toString('base64url')}`;
    this.appTokenHeader = options.appTokenHeader ?? 'service-app-token';
    this.oauthEnabled = options.oauth?.enabled ?? true;
    this.tokenLifetime = options.tokenLifetime ?? 3600;
    this.clientSecret = options.clientSecret ?? makeSecret();
  }

  /** The old secret is refused at once (specification 5.4.4). */
  rotateClientSecret(secret = makeSecret()): string {
    this.clientSecret = secret;
    return secret;
  }
}

/** Ends in characters that arrive changed if a client does not form-encode them. */
function makeSecret(): string {
  return `${randomBytes(24).toString('base64url')}+/=&%`;
}
