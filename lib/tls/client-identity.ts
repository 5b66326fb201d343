import { type Agent } from 'node:https';
import { holdProcess, type Clock } from '../config/clock.js';
import { type TlsInputs, type TlsSettings } from '../config/resolved-options.js';
import { type Secret } from '../config/secret.js';
import { type CertificateSummary, type ConfigurationFault } from '../errors/index.js';
import { daysLeft, isOtherCertificate } from './certificate-summary.js';
import { ExpiryWatch } from './reload/expiry-watch.js';
import { IdentityAgent } from './connections/identity-agent.js';
import { describeChange, lostParts } from './reload/identity-changes.js';
import { IdentityWatch } from './reload/identity-watch.js';
import { checkIdentity, type LoadedIdentity } from './material/check-identity.js';
import { type Log, ReloadFault } from './reload/reload-fault.js';
import { CoalescedRun } from './reload/coalesced-run.js';
import { readSnapshot, type IdentitySnapshot } from './material/read-identity.js';

export interface ClientIdentitySettings {
  tls: TlsSettings;
  /** Connections to one origin, for each of the two agents. */
  maxSockets: number;
  /** URL of a proxy for all connections. */
  proxy?: Secret;
  /** `oauth.mtls`: the token endpoint is shown the client certificate too (RFC 8705). */
  offerToTokenEndpoint: boolean;
  clock: Clock;
  log: Log;
  /** Milliseconds between two looks: 1,000 for files, 60,000 for a function. */
  pollMs?: number;
}

export interface IdentityStatus {
  /** False once the certificate has expired. */
  healthy: boolean;
  certificate?: CertificateSummary;
  /** Whole days until the certificate expires; negative after that. */
  daysLeft?: number;
  /** Why the newest files (or the function's newest answer) are not in use; absent once good ones are. */
  lastReloadFault?: { at: Date; faults: ConfigurationFault[] };
}

export interface IdentityChange {
  certificate?: CertificateSummary;
  /** False where only the service's chain changed. */
  certificateChanged: boolean;
}

const QUIET_MS = 1_000;
const FILE_POLL_MS = 1_000;
const FUNCTION_POLL_MS = 60_000;
/** Many calls are refused at the same moment: their common cause is looked into once. */
const REFUSAL_MEMORY_MS = 10_000;

/** What was read, numbered in the order in which the readings began. */
type Reading = IdentitySnapshot & { number: number };

/** The client identity of one module: two stable agents, followed inputs, and what health wants to know. */
export class ClientIdentity {
  /** For the API: the client certificate where there is one; verified against `tls.chain` alone where that is set. */
  readonly httpsAgent: Agent;
  /** For the token endpoint: verified against the public roots and `tls.chain`. */
  readonly tokenAgent: Agent;

  readonly #settings: ClientIdentitySettings;
  readonly #apiAgent: IdentityAgent;
  readonly #tokenAgent: IdentityAgent;
  readonly #expiry: ExpiryWatch;
  readonly #fault: ReloadFault;
  readonly #watch?: IdentityWatch<Reading>;
  readonly #reloading = new CoalescedRun(() => this.#reload());
  readonly #listeners = new Set<(change: IdentityChange) => void>();
  #inUse: LoadedIdentity;
  #readings = 0;
  /** Number of the last reading that was taken. */
  #taken = 0;
  #following = false;
  #refusedAt = -Infinity;
  #reloadedAfterRefusal?: Promise<boolean>;
  #closed = false;

  /**
   * Reads and checks everything. With faults there is no identity: the caller throws a ServiceCertificateError with
   * all of them, and `certificate` where one could be read.
   */
  static async open(
    settings: ClientIdentitySettings,
  ): Promise<{ identity?: ClientIdentity; faults: ConfigurationFault[]; certificate?: CertificateSummary }> {
    const { tls, clock, offerToTokenEndpoint, log } = settings;
    const snapshot = await readAtStart(tls, clock);
    const { identity, faults, warnings, certificate } = checkIdentity(
      snapshot,
      clock.now(),
      offerToTokenEndpoint,
    );
    if (!identity) return { faults, certificate };
    for (const warning of warnings) log('warn', warning);
    return { identity: new ClientIdentity(settings, identity), faults: [], certificate };
  }

  private constructor(settings: ClientIdentitySettings, loaded: LoadedIdentity) {
    const { tls, clock, maxSockets, proxy, log } = settings;
    this.#settings = settings;
    this.#apiAgent = this.httpsAgent = new IdentityAgent(loaded.apiContext, { maxSockets, proxy });
    // One more: customers' requests may fill `maxSockets`, and that for the api token must not wait for them.
    const tokenSockets = { maxSockets: maxSockets + 1, proxy };
    this.#tokenAgent = this.tokenAgent = new IdentityAgent(loaded.tokenContext, tokenSockets);
    this.#inUse = loaded;
    this.#expiry = new ExpiryWatch(clock, log);
    this.#fault = new ReloadFault(clock, log);
    if (tls.reload && canChange(tls)) {
      const asked = typeof tls.source === 'function';
      const pollMs = settings.pollMs ?? (asked ? FUNCTION_POLL_MS : FILE_POLL_MS);
      // A function returns whole values, and one that issues a certificate at each call would never come to rest.
      const quietMs = asked ? 0 : QUIET_MS;
      const read = () => this.#read();
      const onQuiet = (reading: Reading) => this.#take(reading);
      this.#watch = new IdentityWatch({ pollMs, quietMs, clock, read, onQuiet }, loaded.digest);
    }
  }

  /**
   * Begins to follow the files (or the function) and the certificate's expiry. Not done by {@link open}: the host's
   * start may still fail elsewhere, and then nobody would end it.
   */
  follow(): void {
    if (this.#following || this.#closed) return;
    this.#following = true;
    this.#expiry.watch(this.#inUse.certificate);
    this.#watch?.start();
  }

  /** The application certificate in use. */
  get certificate(): CertificateSummary | undefined {
    return this.#inUse.certificate;
  }

  /** Whether the service is verified against `tls.chain`; else against Node's public roots. */
  get hasChain(): boolean {
    return this.#inUse.chain !== undefined;
  }

  get status(): IdentityStatus {
    const now = this.#settings.clock.now();
    const { certificate } = this.#inUse;
    const status: IdentityStatus = { healthy: !certificate || now < certificate.validTo.getTime() };
    if (certificate) Object.assign(status, { certificate, daysLeft: daysLeft(certificate, now) });
    if (this.#fault.current) status.lastReloadFault = this.#fault.current;
    return status;
  }

  /** Called after each swap; must not throw. Returns what ends that. */
  onChange(listener: (change: IdentityChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Reads the files again (asks the function again), checks everything and swaps; the reading begins after this call.
   * True: another identity is in use now. A bad one is logged once, shows in {@link status}, and the last good one
   * stays. Never rejects.
   */
  async reload(): Promise<boolean> {
    const before = this.#inUse;
    await this.#reloading.request();
    return this.#inUse.digest !== before.digest;
  }

  /**
   * For a call whose certificate was refused: reads again, once for all calls within 10 s. True: another certificate
   * than the refused one is in use now, so one more attempt makes sense.
   */
  async reloadAfterRefusal(refused: CertificateSummary | undefined): Promise<boolean> {
    if (this.#isOther(refused)) return true;
    const { tls, clock } = this.#settings;
    if (!tls.reload || !canChange(tls)) return false;
    if (clock.monotonic() - this.#refusedAt >= REFUSAL_MEMORY_MS) {
      this.#refusedAt = clock.monotonic();
      this.#reloadedAfterRefusal = this.reload();
    }
    await this.#reloadedAfterRefusal;
    return this.#isOther(refused);
  }

  /** Stops all timers and closes the agents: idle connections at once, calls in flight after `graceMs` at the latest. */
  async close(graceMs = 0): Promise<void> {
    this.#closed = true;
    this.#watch?.stop();
    this.#expiry.stop();
    this.#fault.stop();
    this.#listeners.clear();
    const { clock } = this.#settings;
    await Promise.all([this.#apiAgent.close(graceMs, clock), this.#tokenAgent.close(graceMs, clock)]);
  }

  async #read(): Promise<Reading> {
    this.#readings += 1;
    const number = this.#readings;
    const { tls, clock } = this.#settings;
    return { ...(await readSnapshot(tls, clock)), number };
  }

  async #reload(): Promise<void> {
    const reading = await this.#read();
    if (reading.number > this.#taken) this.#watch?.settle(reading.digest);
    this.#take(reading);
  }

  #take(reading: Reading): void {
    // Overtaken: what it saw may have been replaced since.
    if (this.#closed || reading.number < this.#taken) return;
    this.#taken = reading.number;
    if (reading.digest === this.#inUse.digest) return this.#fault.clear();
    const { clock, offerToTokenEndpoint } = this.#settings;
    const { identity, faults, warnings } = checkIdentity(reading, clock.now(), offerToTokenEndpoint);
    const lost = identity ? lostParts(this.#inUse, identity) : [];
    if (identity && lost.length === 0) this.#swap(identity, warnings);
    else {
      const retry = this.#following && this.#watch ? () => void this.reload() : undefined;
      this.#fault.note(reading.digest, [...faults, ...lost], retry);
    }
  }

  #swap(loaded: LoadedIdentity, warnings: readonly string[]): void {
    const before = this.#inUse;
    const { certificate } = loaded;
    this.#inUse = loaded;
    this.#fault.clear();
    this.#apiAgent.use(loaded.apiContext);
    this.#tokenAgent.use(loaded.tokenContext);
    for (const warning of warnings) this.#settings.log('warn', warning);
    this.#settings.log('log', describeChange(before, loaded));
    if (this.#following) this.#expiry.watch(certificate);
    const certificateChanged = isOtherCertificate(before.certificate, certificate);
    for (const listener of this.#listeners) listener({ certificate, certificateChanged });
  }

  #isOther(refused: CertificateSummary | undefined): boolean {
    return isOtherCertificate(this.#inUse.certificate, refused);
  }
}

/** A function that never answers must not let the process end without a word: at start nothing else may hold it. */
async function readAtStart(tls: TlsSettings, clock: Clock): Promise<IdentitySnapshot> {
  const release = holdProcess();
  try {
    return await readSnapshot(tls, clock);
  } finally {
    release();
  }
}

/** Text given as an option stays what it is. */
function canChange({ source }: TlsSettings): boolean {
  return (
    typeof source === 'function' ||
    Object.values(source).some((input: TlsInputs[keyof TlsInputs]) => input && 'file' in input.value)
  );
}
