import { type Agent } from 'node:http';
import { type SecureContext } from 'node:tls';
import { type Clock, formatDate } from '../time/time.js';
import { type TlsSettings } from '../config/resolve-options.js';
import { REREAD_MS, Rotating } from '../config/rotating.js';
import { type CertificateSummary, type ConfigurationFault } from '../errors/index.js';
import { type Outcome } from '../exchange/fault.js';
import { certificateRefusal } from '../exchange/response.js';
import { type Log } from '../telemetry/log.js';
import { daysLeft, describeCertificate, summarize, watchExpiry } from './certificate-summary.js';
import { KeepAliveAgent, plainConnector } from './connections/keep-alive-agent.js';
import { IdentityAgent, type IdentityAgentSettings } from './connections/identity-agent.js';
import { checkIdentity, type LoadedIdentity } from './material/check-identity.js';
import { isFromFiles, readIdentity, type IdentitySnapshot } from './material/read-identity.js';
import { createContextMaker, type ContextMaker } from './material/secure-contexts.js';
import { IdentityWatch } from './identity-watch.js';

/** The settings of a client identity. `maxSockets` limits each agent separately. */
export interface ClientIdentitySettings extends Pick<
  IdentityAgentSettings,
  'maxSockets' | 'proxyFor' | 'connectTimeoutMs' | 'idleTimeoutMs'
> {
  tls: TlsSettings;
  /** `oauth.mtls`: offer the client certificate to the token endpoint too (https://www.rfc-editor.org/rfc/rfc8705). */
  offerToTokenEndpoint: boolean;
  clock: Clock;
  log: Log;
}

/**
 * The state of the certificates in `tls.certificate`. The chain certificates after the application certificate count too, because
 * a server may refuse a connection when one of them has expired.
 */
export interface IdentityStatus {
  /** False if one of the certificates has expired. */
  healthy: boolean;
  /** The certificate that expires first. */
  certificate?: CertificateSummary;
  /** Whole days until that certificate expires; negative if it has expired. */
  daysLeft?: number;
  /** Why the newest files, or the newest result of the function, are not in use. Absent while the newest are in use. */
  lastReloadFault?: { at: Date; faults: ConfigurationFault[] };
}

const FILES_PERIOD_MS = 2_000;
const FUNCTION_PERIOD_MS = 60_000;
/** If only some servers behind an address refuse the certificate, calls wait at most once per this time. */
const WAIT_EVERY_MS = 60_000;

type CallAddress = Pick<URL, 'protocol' | 'hostname' | 'port'>;

/** The public part of a client identity, which test doubles implement. */
export type Identity = Pick<ClientIdentity, keyof ClientIdentity>;

/**
 * The client certificate of one client, and the agents that use it. The two HTTPS agents stay the same objects when the certificate
 * changes. The two agents for plain HTTP are for loopback addresses, the only ones where plain HTTP is allowed.
 */
export class ClientIdentity {
  /** For the API. Offers the client certificate, if there is one. Verifies servers against `tls.chain` only, if it is set. */
  readonly httpsAgent: IdentityAgent;
  /** For the token endpoint. Verifies servers against Node's public roots and `tls.chain`. */
  readonly tokenAgent: IdentityAgent;
  readonly #plainAgent: KeepAliveAgent;
  readonly #plainTokenAgent: KeepAliveAgent;

  readonly #settings: ClientIdentitySettings;
  readonly #contextsFor: ContextMaker;
  readonly #watch: IdentityWatch;
  /** Whether the inputs may change: `tls.reload` is true, and they are files or a function. */
  readonly #isReloadable: boolean;
  readonly #listeners = new Set<() => void>();
  /** The addresses of the calls that wait for a token. */
  readonly #awaitingToken = new Set<CallAddress>();
  /** The fingerprint of the certificate in use, and what the servers `api` and `token` say about it. */
  readonly rotation: Rotating<string | undefined>;
  #current: LoadedIdentity;
  /** The newest inputs, if they have faults and so are not in use. */
  #rejected?: Required<IdentityStatus>['lastReloadFault'] & { digest: string };
  #isClosed = false;
  #stopExpiry?: () => void;

  /**
   * Reads and checks all inputs. If they have faults, there is no identity, and the caller throws a ServiceCertificateError with
   * all faults. `certificate` is present if a certificate could be read, even with faults.
   */
  static async open(
    settings: ClientIdentitySettings,
  ): Promise<{ identity?: ClientIdentity; faults: ConfigurationFault[]; certificate?: CertificateSummary }> {
    const { tls, clock, offerToTokenEndpoint } = settings;
    const snapshot = await readIdentity(tls, clock);
    const contextsFor = createContextMaker(offerToTokenEndpoint);
    const { identity, faults, certificate } = checkIdentity(snapshot, clock.now(), contextsFor);
    return { identity: identity && new ClientIdentity(settings, contextsFor, identity), faults, certificate };
  }

  private constructor(settings: ClientIdentitySettings, contextsFor: ContextMaker, loaded: LoadedIdentity) {
    const { tls, clock, maxSockets } = settings;
    this.#settings = settings;
    this.#contextsFor = contextsFor;
    this.#current = loaded;
    // One connection more: requests for customer tokens may use `maxSockets` connections, and the request for the api token must
    // not wait for them.
    const forTokens = { ...settings, maxSockets: maxSockets + 1 };
    this.httpsAgent = new IdentityAgent(() => loaded.apiContext, settings);
    this.tokenAgent = new IdentityAgent(loaded.tokenContext, forTokens);
    // Preconnect only when a token request is really sent: the token may come from a shared store instead, or from a mock.
    this.tokenAgent.beforeRequest = () => this.#awaitingToken.forEach((url) => this.#preconnect(url));
    this.#plainAgent = new KeepAliveAgent(plainConnector(settings), settings);
    this.#plainTokenAgent = new KeepAliveAgent(plainConnector(settings), forTokens);
    const isFunction = typeof tls.source === 'function';
    this.#isReloadable = tls.reload && (isFunction || isFromFiles(tls));
    const watch = {
      clock,
      periodMs: isFunction ? FUNCTION_PERIOD_MS : FILES_PERIOD_MS,
      // Files may be half written. A function returns whole values, and may issue another certificate at each call.
      needsTwoReads: !isFunction,
      read: (stopped: AbortSignal) => readIdentity(tls, clock, stopped),
      apply: (snapshot: IdentitySnapshot) => this.#applySnapshot(snapshot),
    };
    this.#watch = new IdentityWatch(watch, loaded.digest);
    const read = async () => {
      await this.#watch.readNow();
      return this.certificate?.fingerprint256;
    };
    const rereadMs = isFunction ? REREAD_MS.function : REREAD_MS.file;
    this.rotation = new Rotating({ read, clock, rereadMs, waitEveryMs: WAIT_EVERY_MS });
    this.rotation.set(loaded.certificate?.fingerprint256);
  }

  /**
   * Starts the timers that reload the files (or call the function) and warn of expiry. {@link open} does not start them: if the
   * start of the host application failed afterwards, nothing would stop them.
   */
  startWatching(): void {
    if (this.#isClosed || this.#stopExpiry) return;
    this.#stopExpiry = watchExpiry(() => this.#current, this.#settings.clock, this.#settings.log);
    if (this.#isReloadable) this.#watch.start();
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
    return this.#current.certificate;
  }

  /**
   * The issuer of the last certificate that we send; undefined if that certificate is self-signed. A server that does not know the
   * issuer needs the issuer's certificate from us.
   */
  get lastIssuer(): string | undefined {
    const last = this.#current.sent.at(-1);
    return last && last.issuer !== last.subject ? summarize(last).issuer : undefined;
  }

  /** The type of the certificate's key, for example `RSA` or `P-256`. */
  get keyType(): string | undefined {
    return this.#current.keyType;
  }

  /** The secure context of connections to the API. */
  get secureContext(): SecureContext {
    return this.#current.apiContext;
  }

  /** Whether the service is verified against `tls.chain`. If not, it is verified against Node's public roots. */
  get hasChain(): boolean {
    return this.#current.chain.length > 0;
  }

  /** Whether the service is verified against Node's public roots although `tls.publicRoots` is not set. */
  get lacksChain(): boolean {
    return this.#current.lacksChain;
  }

  /** The identity in use, with all its certificates. */
  get loaded(): LoadedIdentity {
    return this.#current;
  }

  get status(): IdentityStatus {
    const now = this.#settings.clock.now();
    const { firstToEnd: certificate } = this.#current;
    const { at, faults } = this.#rejected ?? {};
    return {
      healthy: !certificate || now < certificate.validTo.getTime(),
      ...(certificate && { certificate, daysLeft: daysLeft(certificate, now) }),
      ...(at && faults && { lastReloadFault: { at, faults } }),
    };
  }

  /** Calls the listener whenever another certificate comes into use. The listener must not throw. */
  onCertificateChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /**
   * Reads the files again (or calls the function). Resolves with whether another identity is in use now. If the new inputs have
   * faults, these are logged once and shown in {@link status}, and the previous identity stays in use. Never rejects.
   */
  async reload(): Promise<boolean> {
    const before = this.#current;
    await this.#watch.readNow();
    return this.#current.digest !== before.digest;
  }

  /**
   * Looks for another certificate after a server refused the one of a request. Resolves with whether another one is in use now.
   * Never rejects. See {@link Rotating.findOther}.
   */
  async findOther(
    refused: CertificateSummary | undefined,
    outcome: Outcome,
    server: 'api' | 'token',
  ): Promise<boolean> {
    // A server that crashed ends the connection without an alert too, which should not cost a call of the tls function.
    const isCrash = outcome.fault?.kind === 'reset' && typeof this.#settings.tls.source === 'function';
    if (!this.#isReloadable || isCrash) return this.rotation.last !== refused?.fingerprint256;
    const isSure = refused !== undefined && certificateRefusal(outcome) === 'refused';
    const other = await this.rotation.findOther(refused?.fingerprint256, { server, isSure });
    return other !== undefined;
  }

  /**
   * Stops all timers and closes idle connections. Requests in flight over TLS may take `graceMs` to finish: the host application may
   * have sent them over `auth.httpsAgent`. Resolves when no connection is left.
   */
  async close(graceMs = 0): Promise<void> {
    this.#isClosed = true;
    this.#watch.stop();
    this.#stopExpiry?.();
    this.#listeners.clear();
    for (const agent of [this.#plainAgent, this.#plainTokenAgent]) agent.close();
    await Promise.all([this.httpsAgent.close(graceMs), this.tokenAgent.close(graceMs)]);
  }

  #applySnapshot(snapshot: IdentitySnapshot): void {
    const { digest } = snapshot;
    const { clock, log } = this.#settings;
    if (digest === this.#current.digest) {
      this.#rejected = undefined;
      return;
    }
    const now = clock.now();
    // Check inputs again even if they were rejected before, because a certificate may have become valid in the meantime.
    const { identity, faults } = checkIdentity(snapshot, now, this.#contextsFor, this.#current);
    if (identity) return this.#activate(identity);
    if (digest !== this.#rejected?.digest) {
      const list = faults.map(({ option, message }) => `\n  - ${option}: ${message}`).join('');
      log.error(`The new client identity is not usable; the one before stays in use:${list}`);
    }
    this.#rejected = { at: new Date(now), faults, digest };
  }

  #activate(loaded: LoadedIdentity): void {
    const before = this.#current;
    this.#current = loaded;
    this.rotation.set(loaded.certificate?.fingerprint256);
    this.#rejected = undefined;
    this.httpsAgent.switchContext(() => loaded.apiContext);
    this.tokenAgent.switchContext(loaded.tokenContext);
    const { certificate } = loaded;
    const name =
      certificate && `: ${describeCertificate(certificate)}, valid until ${formatDate(certificate.validTo)}`;
    this.#settings.log.log(`A new client identity is in use${name ?? ''}.`);
    if (before.certificate?.fingerprint256 === certificate?.fingerprint256) return;
    for (const listener of this.#listeners) listener();
  }
}
