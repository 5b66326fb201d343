import { type Agent } from 'node:http';
import { type CertificateSummary } from '../errors/index.js';
import { summarize } from './certificate-summary.js';
import { type ConnectorSettings, plainConnector, tlsConnector } from './connections/connectors.js';
import { type AgentSettings, KeepAliveAgent } from './connections/keep-alive-agent.js';
import { IdentitySource, type IdentitySourceSettings } from './identity-source.js';
import { checkIdentity, type LoadedIdentity, type LoadResult } from './material/check-identity.js';
import { readIdentity } from './material/read-identity.js';
import { createContextMaker, type ContextMaker } from './material/secure-contexts.js';

/** The settings of a client identity. `maxSockets` limits each agent separately. */
export type ClientIdentitySettings = IdentitySourceSettings &
  ConnectorSettings &
  Pick<AgentSettings, 'maxSockets' | 'idleTimeoutMs'>;

type CallAddress = Pick<URL, 'protocol' | 'hostname' | 'port'>;

/** The public part of a client identity, which test doubles implement. */
export type Identity = Pick<ClientIdentity, keyof ClientIdentity>;

/**
 * The client certificate of one client, and the agents that use it. The two HTTPS agents stay the same objects when the certificate
 * changes. The two agents for plain HTTP are for loopback addresses, the only ones where plain HTTP is allowed.
 */
export class ClientIdentity extends IdentitySource {
  /** For the API. Offers the client certificate, if there is one. Verifies servers against `tls.chain` only, if it is set. */
  readonly httpsAgent: KeepAliveAgent;
  /** For the token endpoint. Verifies servers against Node's public roots and `tls.chain`. */
  readonly tokenAgent: KeepAliveAgent;
  readonly #plainAgent: KeepAliveAgent;
  readonly #plainTokenAgent: KeepAliveAgent;

  readonly #settings: ClientIdentitySettings;
  readonly #listeners = new Set<() => void>();
  /** The addresses of the calls that wait for a token. */
  readonly #awaitingToken = new Set<CallAddress>();

  /**
   * Reads and checks all inputs. If they have faults, there is no identity, and the caller throws a ServiceCertificateError with
   * all faults. If the only fault is that the certificate is not valid now, the caller may use the identity all the same.
   */
  static async open(settings: ClientIdentitySettings): Promise<LoadResult<ClientIdentity>> {
    const { tls, clock, offerToTokenEndpoint } = settings;
    const snapshot = await readIdentity(tls, clock);
    const contextsFor = createContextMaker(offerToTokenEndpoint);
    const { identity, ...rest } = checkIdentity(snapshot, clock.now(), contextsFor);
    return { identity: identity && new ClientIdentity(settings, contextsFor, identity), ...rest };
  }

  private constructor(settings: ClientIdentitySettings, contextsFor: ContextMaker, loaded: LoadedIdentity) {
    super(settings, contextsFor, loaded);
    this.#settings = settings;
    // One connection more: requests for customer tokens may use `maxSockets` connections, and the request for the api token must
    // not wait for them.
    const forTokens = { ...settings, maxSockets: settings.maxSockets + 1 };
    this.httpsAgent = new KeepAliveAgent(
      tlsConnector(() => loaded.apiContext, settings),
      settings,
    );
    this.tokenAgent = new KeepAliveAgent(tlsConnector(loaded.tokenContext, settings), forTokens);
    // Preconnect only when a token request is really sent: the token may come from a shared store instead, or from a mock.
    this.tokenAgent.beforeRequest = () => this.#awaitingToken.forEach((url) => this.#preconnect(url));
    this.#plainAgent = new KeepAliveAgent(plainConnector(settings), settings, 'http:');
    this.#plainTokenAgent = new KeepAliveAgent(plainConnector(settings), forTokens, 'http:');
  }

  /** The agent for a call to the API. */
  agentFor({ protocol }: Pick<URL, 'protocol'>): Agent {
    return protocol === 'https:' ? this.httpsAgent : this.#plainAgent;
  }

  /** The agent for a request to the token endpoint. */
  tokenAgentFor({ protocol }: Pick<URL, 'protocol'>): Agent {
    return protocol === 'https:' ? this.tokenAgent : this.#plainTokenAgent;
  }

  /**
   * Waits for the token of a call. If the token is requested from the endpoint, a connection to the API is opened at the same
   * time, so that the call waits for fewer round trips afterwards.
   */
  async preconnectDuring<T>(url: CallAddress, getToken: () => Promise<T>): Promise<T> {
    this.#awaitingToken.add(url);
    // A token request of another call is already in flight, so `beforeRequest` will not run for this call.
    if (Object.keys(this.tokenAgent.sockets).length > 0) this.#preconnect(url);
    try {
      return await getToken();
    } finally {
      this.#awaitingToken.delete(url);
    }
  }

  #preconnect(url: CallAddress): void {
    if (url.protocol === 'https:') this.httpsAgent.preconnect(url);
  }

  get certificate(): CertificateSummary | undefined {
    return this.loaded.certificate;
  }

  /**
   * The issuer of the last certificate that we send; undefined if that certificate is self-signed. A server that does not know the
   * issuer needs the issuer's certificate from us.
   */
  get lastIssuer(): string | undefined {
    const last = this.loaded.sent.at(-1);
    return last && last.issuer !== last.subject ? summarize(last).issuer : undefined;
  }

  /** The type of the certificate's key, for example `RSA` or `P-256`. */
  get keyType(): string | undefined {
    return this.loaded.keyType;
  }

  /** Whether the service is verified against `tls.chain`. If not, it is verified against Node's public roots. */
  get hasChain(): boolean {
    return this.loaded.chain.length > 0;
  }

  /** Calls the listener whenever another certificate comes into use. The listener must not throw. */
  onCertificateChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /**
   * Stops all timers and closes idle connections. Requests in flight over TLS may take `graceMs` to finish: the host application may
   * have sent them over `auth.httpsAgent`. Resolves when no connection is left.
   */
  async close(graceMs = 0): Promise<void> {
    this.stop();
    const plain = [this.#plainAgent, this.#plainTokenAgent].map((agent) => agent.close(0));
    await Promise.all([...plain, this.httpsAgent.close(graceMs), this.tokenAgent.close(graceMs)]);
  }

  protected override onChange(before: LoadedIdentity): void {
    const { apiContext, tokenContext, certificate } = this.loaded;
    this.httpsAgent.switchConnector(tlsConnector(() => apiContext, this.#settings));
    this.tokenAgent.switchConnector(tlsConnector(tokenContext, this.#settings));
    if (before.certificate?.fingerprint256 === certificate?.fingerprint256) return;
    for (const listener of this.#listeners) listener();
  }
}
