import { type Clock, formatDate } from '../time/time.js';
import { type TlsSettings } from '../config/resolve-options.js';
import { REREAD_MS, Rotating } from '../config/rotating.js';
import { type CertificateSummary, type ConfigurationFault } from '../errors/index.js';
import { type Outcome } from '../exchange/fault.js';
import { certificateVerdict, isCertain } from '../exchange/response.js';
import { type Log } from '../telemetry/telemetry.js';
import { daysLeft, describeCertificate, summarize, watchExpiry } from './certificate-summary.js';
import { checkIdentity, findLostIssuer, type LoadedIdentity } from './material/check-identity.js';
import { isFromFiles, readIdentity, type IdentitySnapshot } from './material/read-identity.js';
import { type ContextMaker } from './material/secure-contexts.js';

/**
 * The state of the certificates in `tls.certificate`. The chain certificates after the application certificate count too, because
 * a server may refuse a connection when one of them has expired.
 */
export interface IdentityStatus {
  /** False if one of the certificates has expired, or is not valid yet. */
  healthy: boolean;
  /** The certificate that expires first. */
  certificate?: CertificateSummary;
  /** Whole days until that certificate expires; negative if it has expired. */
  daysLeft?: number;
  /** Why the newest files, or the newest result of the function, are not in use. Absent while the newest are in use. */
  lastReloadFault?: { at: Date; faults: ConfigurationFault[] };
}

/** Milliseconds between two readings, as all times here. */
const FILES_PERIOD_MS = 2_000;
const FUNCTION_PERIOD_MS = 60_000;
/** For this time, a file stays out of use that has fewer certificates of authorities than the identity in use. */
const INCOMPLETE_MS = 600_000;
/** If only some servers behind an address refuse the certificate, calls wait at most once per this time. */
const WAIT_EVERY_MS = 60_000;

export interface IdentitySourceSettings {
  tls: TlsSettings;
  /** `oauth.mtls`: offer the client certificate to the token endpoint too (https://www.rfc-editor.org/rfc/rfc8705). */
  offerToTokenEndpoint: boolean;
  clock: Clock;
  log: Log;
}

/**
 * The certificate, key and chain in use, and how others take their place: they are read again periodically, after a server has
 * refused the certificate, and by {@link reload}. ClientIdentity adds the agents. The source is polled and its content compared, instead of using fs.watch(): file
 * system events differ between a rename, a write in place and a new symlink (Kubernetes, cert-manager), and between file systems.
 */
export abstract class IdentitySource {
  /** The fingerprint of the certificate in use, and what the servers `api` and `token` say about it. */
  readonly rotation: Rotating<string | undefined>;
  readonly #settings: IdentitySourceSettings;
  readonly #contextsFor: ContextMaker;
  readonly #isFunction: boolean;
  /** Whether the inputs may change: `tls.reload` is true, and they are files or a function. */
  readonly #isReloadable: boolean;
  readonly #stop = new AbortController();
  #loaded: LoadedIdentity;
  /** The digest of the content that was read last. */
  #digest: string;
  /** The newest inputs, if they have faults and so are not in use. `since`: when they were first found, by the monotonic clock. */
  #rejected?: Required<IdentityStatus>['lastReloadFault'] & { digest: string; since: number };
  #reading = Promise.resolve();
  #cancelPoll?: () => void;
  #stopExpiry?: () => void;

  protected constructor(settings: IdentitySourceSettings, contextsFor: ContextMaker, loaded: LoadedIdentity) {
    const { tls, clock } = settings;
    this.#settings = settings;
    this.#contextsFor = contextsFor;
    this.#loaded = loaded;
    this.#digest = loaded.digest;
    this.#isFunction = typeof tls.source === 'function';
    this.#isReloadable = tls.reload && (this.#isFunction || isFromFiles(tls));
    const rereadMs = this.#isFunction ? REREAD_MS.function : REREAD_MS.file;
    const read = async (isRefused: boolean) => {
      await this.#read({ isRefused });
      return this.rotation.last;
    };
    this.rotation = new Rotating({ read, clock, rereadMs, waitEveryMs: WAIT_EVERY_MS });
    this.rotation.set(loaded.certificate?.fingerprint256);
  }

  /** Called when another identity comes into use. */
  protected abstract onChange(before: LoadedIdentity): void;

  /** The identity in use, with all its certificates. */
  get loaded(): LoadedIdentity {
    return this.#loaded;
  }

  get status(): IdentityStatus {
    const now = this.#settings.clock.now();
    const sent = this.#loaded.sent.map(summarize);
    const [certificate] = sent.sort((one, other) => Number(one.validTo) - Number(other.validTo));
    const { at, faults } = this.#rejected ?? {};
    return {
      healthy: sent.every(({ validFrom, validTo }) => Number(validFrom) <= now && now < Number(validTo)),
      ...(certificate && { certificate, daysLeft: daysLeft(certificate, now) }),
      ...(at && faults && { lastReloadFault: { at, faults } }),
    };
  }

  /**
   * Starts the timers that reload the files (or call the function) and warn of expiry. They do not keep the process running. They do
   * not start earlier: if the start of the host application failed afterwards, nothing would stop them.
   */
  startWatching(): void {
    if (this.#stop.signal.aborted || this.#stopExpiry) return;
    this.#stopExpiry = watchExpiry(() => this.#loaded, this.#settings.clock, this.#settings.log);
    if (this.#isReloadable) this.#schedulePoll();
  }

  /** Ends the timers. The result of a reading in progress is not used. */
  protected stop(): void {
    this.#stop.abort();
    this.#cancelPoll?.();
    this.#stopExpiry?.();
  }

  /**
   * Reads the files again (or calls the function), with a reading that begins after this call. Resolves with whether another identity
   * is in use now. If the new inputs have faults, these are logged once and shown in {@link status}, and the previous identity stays
   * in use. Never rejects.
   */
  async reload(): Promise<boolean> {
    const { digest } = this.#loaded;
    await this.rotation.readNext();
    return this.#loaded.digest !== digest;
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
    const isCrash = outcome.fault?.kind === 'reset' && this.#isFunction;
    if (!this.#isReloadable || isCrash) return this.rotation.last !== refused?.fingerprint256;
    const isSure = refused !== undefined && isCertain(certificateVerdict(outcome));
    const other = await this.rotation.findOther(refused?.fingerprint256, { server, isSure });
    return other !== undefined;
  }

  /** Each reading schedules the next, so that all of them run in the async context of {@link startWatching}. */
  #schedulePoll(): void {
    const poll = async (): Promise<void> => {
      // Files may be half written, so two readings in a row have to find the same. The result of a function is whole, and a function
      // that issues another certificate at each call never returns the same twice.
      await this.#read({ isTwice: !this.#isFunction });
      if (!this.#stop.signal.aborted) this.#schedulePoll();
    };
    const periodMs = this.#isFunction ? FUNCTION_PERIOD_MS : FILES_PERIOD_MS;
    this.#cancelPoll = this.#settings.clock.watch(() => void poll(), periodMs);
  }

  /**
   * Reads the inputs, and puts them into use if they have no faults. There is one reading at a time, so that an older content never
   * replaces a newer one. Settles within 30 s, and never rejects: an unexpected error must not stop later readings.
   * @param isTwice whether the content is used only if the reading before has found the same
   * @param isRefused whether a server has refused the certificate in use
   */
  #read({ isTwice = false, isRefused = false }): Promise<void> {
    const { tls, clock } = this.#settings;
    const read = async () => {
      const snapshot = await readIdentity(tls, clock, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      const isSettled = !isTwice || snapshot.digest === this.#digest;
      this.#digest = snapshot.digest;
      if (isSettled) this.#apply(snapshot, isRefused);
    };
    return (this.#reading = this.#reading.then(read).catch(() => undefined));
  }

  #apply(snapshot: IdentitySnapshot, isRefused: boolean): void {
    const { digest } = snapshot;
    const { clock, log } = this.#settings;
    if (digest === this.#loaded.digest) {
      this.#rejected = undefined;
      return;
    }
    const [now, monotonic] = [clock.now(), clock.monotonic()];
    const before = this.#rejected?.digest === digest ? this.#rejected : undefined;
    const since = before?.since ?? monotonic;
    // Check inputs again even if they were rejected before, because a certificate may have become valid in the meantime.
    const { identity, faults } = checkIdentity(snapshot, now, this.#contextsFor, {
      inUse: this.#loaded,
      mayLackIssuer:
        this.#isFunction || isRefused || !this.status.healthy || monotonic - since >= INCOMPLETE_MS,
    });
    if (identity) return this.#use(identity);
    if (!before) {
      const list = faults.map(({ option, message }) => `\n  - ${option}: ${message}`).join('');
      log.error(`The new client identity is not usable; the one before stays in use:${list}`);
    }
    this.#rejected = { at: new Date(now), faults, digest, since };
  }

  #use(loaded: LoadedIdentity): void {
    const before = this.#loaded;
    const { certificate } = loaded;
    this.#loaded = loaded;
    this.#rejected = undefined;
    this.rotation.set(certificate?.fingerprint256);
    this.onChange(before);
    const issuer = findLostIssuer(loaded.sent, before.sent);
    if (issuer !== undefined && !this.#isFunction)
      this.#settings.log.warn(
        `tls.certificate: the new file lacks the certificate of the issuer "${issuer}"; the one before had more certificates of authorities. A server that does not know this issuer refuses the new certificate.`,
      );
    const name =
      certificate && `: ${describeCertificate(certificate)}, valid until ${formatDate(certificate.validTo)}`;
    this.#settings.log.log(`A new client identity is in use${name ?? ''}.`);
  }
}
