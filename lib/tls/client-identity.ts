import { type Agent } from 'node:http';
import { type SecureContext } from 'node:tls';
import { type Clock, formatDate, watching } from '../time/clock.js';
import { sleep } from '../time/timers.js';
import { type TlsSettings } from '../config/resolved-options.js';
import { type CertificateSummary, type ConfigurationFault } from '../errors/index.js';
import { type Log } from '../exchange/io.js';
import { daysLeft, describeCertificate, summarize } from './certificate-summary.js';
import { KeepAliveAgent, plainConnector } from './connections/keep-alive-agent.js';
import { IdentityAgent, type IdentityAgentSettings } from './connections/identity-agent.js';
import { checkIdentity, type LoadedIdentity } from './material/check-identity.js';
import { isFromFiles, readIdentity, type IdentitySnapshot } from './material/read-identity.js';
import { contextMaker, type ContextMaker } from './material/secure-contexts.js';
import { watchExpiry } from './reload/expiry-watch.js';
import { IdentityWatch } from './reload/identity-watch.js';

/** `maxSockets` is for each of the agents. */
export interface ClientIdentitySettings extends Pick<
  IdentityAgentSettings,
  'maxSockets' | 'proxyFor' | 'connectTimeoutMs' | 'idleTimeoutMs'
> {
  tls: TlsSettings;
  /** `oauth.mtls`: the token endpoint gets the client certificate too (RFC 8705). */
  offerToTokenEndpoint: boolean;
  clock: Clock;
  log: Log;
}

/** The state of the certificates in `tls.certificate`: a server may refuse ours because of one that we send after it. */
export interface IdentityStatus {
  /** False once one of them has expired. */
  healthy: boolean;
  /** The one that ends first. */
  certificate?: CertificateSummary;
  /** Whole days until it ends; negative after that. */
  daysLeft?: number;
  /** Why the newest files (or the function's newest answer) are not in use; absent once good ones are. */
  lastReloadFault?: { at: Date; faults: ConfigurationFault[] };
}

const FILES_PERIOD_MS = 2_000;
const FUNCTION_PERIOD_MS = 60_000;
/** While calls are refused, files are read again at most once in this time, and a function is called at most so often. */
const MIN_FILES_PERIOD_MS = 1_000;
const MIN_FUNCTION_PERIOD_MS = 10_000;
/** How long calls wait for new files, from the first refusal on. */
const WAIT_MS = 2_000;
/** If only some servers refuse a certificate, calls wait at most once in this time. */
const WAIT_PERIOD_MS = 60_000;

type CallAddress = Pick<URL, 'protocol' | 'hostname' | 'port'>;

/** The public part, which doubles can stand in for. */
export type Identity = Pick<ClientIdentity, keyof ClientIdentity>;

/**
 * The client identity of one module, and its agents: for https two that stay the same objects while their certificate
 * changes, and two for plain http, which is allowed on loopback only.
 */
export class ClientIdentity {
  /** For the API: with the client certificate, if there is one. Servers are verified against `tls.chain` alone, if set. */
  readonly httpsAgent: IdentityAgent;
  /** For the token endpoint: servers are verified against the public roots and `tls.chain`. */
  readonly tokenAgent: IdentityAgent;
  readonly #plainAgent: KeepAliveAgent;
  readonly #plainTokenAgent: KeepAliveAgent;

  readonly #settings: ClientIdentitySettings;
  readonly #contextsFor: ContextMaker;
  readonly #watch: IdentityWatch;
  /** Whether the inputs are read again by themselves. */
  readonly #isReloadable: boolean;
  readonly #listeners = new Set<() => void>();
  /** Where calls go that wait for a token. */
  readonly #awaitingToken = new Set<CallAddress>();
  #current: LoadedIdentity;
  /** What was read last, and cannot be used. */
  #rejected?: Required<IdentityStatus>['lastReloadFault'] & { digest: string };
  #isClosed = false;
  #stopExpiry?: () => void;
  /** The last reading after a refusal. Times are monotonic milliseconds. */
  #lastReload = { at: -Infinity, done: Promise.resolve(false) };
  /** The first refusal that calls wait after. */
  #firstRefusal = { of: '', at: -Infinity };

  /**
   * Reads and checks everything. With faults there is no identity: the caller throws a ServiceCertificateError with all of
   * them, and with `certificate` if one could be read.
   */
  static async open(
    settings: ClientIdentitySettings,
  ): Promise<{ identity?: ClientIdentity; faults: ConfigurationFault[]; certificate?: CertificateSummary }> {
    const { tls, clock, offerToTokenEndpoint } = settings;
    const snapshot = await readIdentity(tls, clock);
    const contextsFor = contextMaker(offerToTokenEndpoint);
    const { identity, faults, certificate } = checkIdentity(snapshot, clock.now(), contextsFor);
    return { identity: identity && new ClientIdentity(settings, contextsFor, identity), faults, certificate };
  }

  private constructor(settings: ClientIdentitySettings, contextsFor: ContextMaker, loaded: LoadedIdentity) {
    const { tls, clock, maxSockets } = settings;
    this.#settings = settings;
    this.#contextsFor = contextsFor;
    this.#current = loaded;
    // One more: requests for customer tokens may use `maxSockets`, and the one for the api token must not wait for them.
    const forTokens = { ...settings, maxSockets: maxSockets + 1 };
    this.httpsAgent = new IdentityAgent(() => loaded.apiContext, settings);
    this.tokenAgent = new IdentityAgent(loaded.tokenContext, forTokens);
    // Not at the beginning of the call: the token may come from a shared store, or a mock may answer in the endpoint's place.
    this.tokenAgent.beforeRequest = () => this.#awaitingToken.forEach((url) => this.#preconnect(url));
    this.#plainAgent = new KeepAliveAgent(plainConnector(settings), settings);
    this.#plainTokenAgent = new KeepAliveAgent(plainConnector(settings), forTokens);
    const isFunction = typeof tls.source === 'function';
    this.#isReloadable = tls.reload && (isFunction || isFromFiles(tls));
    const watch = {
      clock,
      periodMs: isFunction ? FUNCTION_PERIOD_MS : FILES_PERIOD_MS,
      // A function returns whole values, and one that issues a certificate at each call never the same.
      needsTwoReads: !isFunction,
      read: (stopped: AbortSignal) => readIdentity(tls, clock, stopped),
      apply: (snapshot: IdentitySnapshot) => this.#applySnapshot(snapshot),
    };
    this.#watch = new IdentityWatch(watch, loaded.digest);
  }

  /**
   * Begins to follow the files (or the function) and the certificate's expiry. Not in {@link open}: if the host's start
   * fails elsewhere, nobody would stop it.
   */
  startWatching(): void {
    if (this.#isClosed || this.#stopExpiry) return;
    this.#stopExpiry = watchExpiry(() => this.#current, this.#settings.clock, this.#settings.log);
    if (this.#isReloadable) this.#watch.start();
  }

  /** The agent for a call of the API. */
  agentFor({ protocol }: Pick<URL, 'protocol'>): Agent {
    return protocol === 'https:' ? this.httpsAgent : this.#plainAgent;
  }

  /** The agent for a request to the token endpoint. */
  tokenAgentFor({ protocol }: Pick<URL, 'protocol'>): Agent {
    return protocol === 'https:' ? this.tokenAgent : this.#plainTokenAgent;
  }

  /**
   * Waits for a token of a call. While it is requested from the endpoint, the API's connection is made too: the call then waits
   * for fewer round trips.
   */
  async preconnectDuring<T>(url: CallAddress, token: () => Promise<T>): Promise<T> {
    this.#awaitingToken.add(url);
    // Another call has requested it already.
    if (Object.keys(this.tokenAgent.sockets).length > 0) this.#preconnect(url);
    try {
      return await token();
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
   * Who issued the last certificate that we send; undefined if it signed itself. A server may need that one's certificate
   * from us.
   */
  get lastIssuer(): string | undefined {
    const last = this.#current.sent.at(-1);
    return last && last.issuer !== last.subject ? summarize(last).issuer : undefined;
  }

  /** The type of the certificate's key, for example `RSA` or `P-256`. */
  get keyType(): string | undefined {
    return this.#current.keyType;
  }

  /** Of the API's connections. */
  get secureContext(): SecureContext {
    return this.#current.apiContext;
  }

  /** Whether the service is verified against `tls.chain`; else against Node's public roots. */
  get hasChain(): boolean {
    return this.#current.chain.length > 0;
  }

  /** Whether public roots are used though `tls.publicRoots` is not set. */
  get lacksChain(): boolean {
    return this.#current.lacksChain;
  }

  /** What is in use, with all its certificates. */
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

  /** Calls the listener whenever another certificate comes into use. It must not throw. */
  onCertificateChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /**
   * Reads the files again (or calls the function). Resolves with true if another identity is in use then. A bad one is
   * logged once and shows in {@link status}, and the last good one stays in use. Never rejects.
   */
  async reload(): Promise<boolean> {
    const before = this.#current;
    await this.#watch.readNow();
    return this.#current.digest !== before.digest;
  }

  /**
   * Reads the files again for a call whose certificate was refused. Resolves with true once another certificate is in use.
   * The server may know the new certificate before its files are here: with `mayWait` it goes on reading them for up to 2 s
   * from the first refusal. A function is called at most once in 10 s, and not waited for. Never rejects.
   * @param mayWait the certificate has worked with this server
   * @param filesOnly a function is not called: the refusal is a guess, and a vault would be asked at each fault
   */
  async reloadAfterRefusal(
    refused: CertificateSummary | undefined,
    mayWait = false,
    filesOnly = false,
  ): Promise<boolean> {
    const isOther = () => this.certificate?.fingerprint256 !== refused?.fingerprint256;
    const isFunction = typeof this.#settings.tls.source === 'function';
    if (isOther() || !this.#isReloadable || (isFunction && filesOnly)) return isOther();
    const clock = watching(this.#settings.clock);
    const of = refused?.fingerprint256 ?? '';
    const isNew = of !== this.#firstRefusal.of || clock.monotonic() - this.#firstRefusal.at > WAIT_PERIOD_MS;
    if (mayWait && isNew) this.#firstRefusal = { of, at: clock.monotonic() };
    const endsAt = mayWait && !isFunction ? this.#firstRefusal.at + WAIT_MS : -Infinity;
    for (;;) {
      const now = clock.monotonic();
      const { at } = this.#lastReload;
      const isDue = now - at >= (isFunction ? MIN_FUNCTION_PERIOD_MS : MIN_FILES_PERIOD_MS);
      // The last reading is at the end of the wait, though the one before it may be less than a second ago.
      const isLast = now >= endsAt;
      if (isDue || (isLast && at < endsAt)) this.#lastReload = { at: now, done: this.reload() };
      await this.#lastReload.done;
      if (isOther() || isLast) return isOther();
      await sleep(
        clock,
        Math.max(0, Math.min(endsAt, this.#lastReload.at + MIN_FILES_PERIOD_MS) - clock.monotonic()),
      );
    }
  }

  /**
   * Stops all timers and closes idle connections. Calls in flight over TLS get `graceMs`: they may be the host's own,
   * over `auth.httpsAgent`. Resolves when no connection is left.
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
    // Also what was refused before: a certificate may become valid.
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
