import { RegisteredApplication } from './application.js';
import { CertificateAuthority, type IssuedCertificate } from './certificate-authority.js';
import { type SimulatedCustomer } from './servers/answer-api-call.js';
import { type ServerGroup } from './servers/server-group.js';
import { responders } from './servers/responders.js';
import { basePathOf, startServers } from './servers/start-servers.js';
import { FaultBook, type FaultHandle, type FaultRule } from './faults.js';
import {
  environmentFor,
  moduleOptionsFor,
  type SimulatorModeOptions,
  type SimulatorModuleOptions,
} from './module-options.js';
import { type SimulatorFace, type RecordedRequest, RequestLog } from './request-log.js';
import {
  type AccessTokenRequest,
  type CertificateRefusal,
  type ClientCertificateRequest,
  type HandshakeCount,
  type ServerCertificateRequest,
  type SimulatorAddress,
  type SimulatorOptions,
} from './simulator.options.js';
import { TokenIssuer } from './token-issuer.js';

const SERVER_NAMES = ['localhost', '127.0.0.1', '::1'];
const DEFAULT_HEADER = 'service-app-token';

interface Parts {
  options: SimulatorOptions;
  authority: CertificateAuthority;
  applicationCertificate: IssuedCertificate;
  application: RegisteredApplication;
  issuer: TokenIssuer;
  server: IssuedCertificate;
}

/**
 * Simulates the service on loopback, over real TLS: its API addresses, its token endpoints and its refusals
 * (specification 4, 5 and 7). Each simulator makes its own certificates.
 *
 * Needs the optional peer `npm i -D @peculiar/x509`.
 *
 * @example
 * const simulator = await ServiceSimulator.start();
 * const module = await Test.createTestingModule({
 *   imports: [ServiceModule.forRoot(simulator.moduleOptions({ environment: 'production', authentication: 'mtls' }))],
 * }).compile();
 * await module.get(BanksService).list();
 * expect(simulator.requests).toMatchObject([{ face: 'base', method: 'GET', path: '/banks/v1', status: 200 }]);
 * await simulator.stop();
 */
export class ServiceSimulator {
  /** Seconds that tokens issued from now on live. May be changed at any time. */
  tokenLifetime: number;
  /** The application's certificate and private key, as in the archive of the developer portal. */
  readonly application: IssuedCertificate;
  /** Customers created through POST /customers/v1, in order. */
  readonly customers: readonly SimulatedCustomer[];

  readonly #parts: Parts;
  readonly #log: RequestLog;
  readonly #faults: FaultBook;
  readonly #revoked = new Set<string>();
  readonly #refusals: CertificateRefusal[] = [];
  readonly #createdCustomers: SimulatedCustomer[] = [];
  #servers?: ServerGroup;
  #foreignAuthority?: Promise<CertificateAuthority>;
  #stopped?: Promise<void>;

  private constructor(parts: Parts) {
    this.#parts = parts;
    this.tokenLifetime = parts.options.tokenLifetime ?? 3600;
    this.application = parts.applicationCertificate;
    this.customers = this.#createdCustomers;
    this.#log = new RequestLog(parts.options.maxRequests ?? 50_000);
    this.#faults = new FaultBook(parts.options.random ?? Math.random);
  }

  /**
   * Makes the certificates and starts all servers on 127.0.0.1.
   *
   * @throws Error where an optional peer is not installed, or a given port is taken
   */
  static async start(options: SimulatorOptions = {}): Promise<ServiceSimulator> {
    const application = new RegisteredApplication(options);
    const [authority, issuer] = await Promise.all([
      CertificateAuthority.create('Simulated Service'),
      TokenIssuer.create('https://service.simulated'),
    ]);
    const { applicationLifetime, serverLifetime } = options.certificates ?? {};
    const [applicationCertificate, server] = await Promise.all([
      authority.issue(
        { client: true },
        {
          commonName: application.clientId,
          organization: 'Simulated Application',
          notAfter: after(applicationLifetime),
        },
      ),
      authority.issue({ server: SERVER_NAMES }, { commonName: 'localhost', notAfter: after(serverLifetime) }),
    ]);
    const parts = { options, authority, applicationCertificate, application, issuer, server };
    const simulator = new ServiceSimulator(parts);
    await simulator.#listen();
    return simulator;
  }

  /** The six addresses: `https://127.0.0.1:<port>`, and `basePath` where set. */
  get urls(): Record<SimulatorAddress, string> {
    return this.#startedServers().urls(basePathOf(this.#parts.options));
  }

  /** The service's public chain, PEM: what `tls.chain` takes. */
  get chain(): string {
    return this.#parts.authority.chain;
  }

  get clientId(): string {
    return this.#parts.application.clientId;
  }

  /** The current one. */
  get clientSecret(): string {
    return this.#parts.application.clientSecret;
  }

  get appToken(): string {
    return this.#parts.application.appToken;
  }

  /** All requests since the start or the last `clearRequests()`, in order of arrival. The list grows as they arrive. */
  get requests(): readonly RecordedRequest[] {
    return this.#log.entries;
  }

  /** The requests to a token endpoint. */
  get tokenRequests(): RecordedRequest[] {
    return this.#log.entries.filter((request) => request.face === 'token');
  }

  /** All other requests. */
  get apiRequests(): RecordedRequest[] {
    return this.#log.entries.filter((request) => request.face !== 'token');
  }

  /** Connections that were ended because of their client certificate, in order. */
  get refusals(): readonly CertificateRefusal[] {
    return this.#refusals;
  }

  /** TLS handshakes by server, since the start; `token` counts both environments. */
  get handshakes(): Record<SimulatorFace, HandshakeCount> {
    return this.#startedServers().handshakes;
  }

  /** Connections open now, over all servers. */
  get openConnections(): number {
    return this.#startedServers().openConnections;
  }

  /** Empties `requests`. */
  clearRequests(): void {
    this.#log.clear();
  }

  /**
   * Resolves to the first request that matches, past or future. It may not have been answered yet.
   *
   * @throws Error after `timeoutMs` (5,000), and when the simulator is stopped
   */
  waitForRequest(
    predicate: (request: RecordedRequest) => boolean,
    timeoutMs = 5_000,
  ): Promise<RecordedRequest> {
    return this.#log.waitFor(predicate, timeoutMs);
  }

  /**
   * Makes the next matching request (or connection) fail. Of several active faults, the first that matches is used.
   *
   * @example
   * simulator.fail({ face: 'token', fault: { status: 503 } });
   * simulator.fail({ path: '/banks/v1', times: 2, fault: 'reset' });
   * simulator.fail({ probability: 0.2, fault: { status: 429, headers: { 'retry-after': '1' } } });
   */
  fail(rule: FaultRule): FaultHandle {
    return this.#faults.add(rule);
  }

  /** Ends all faults. */
  clearFaults(): void {
    this.#faults.clear();
  }

  /** Sets another client secret and returns it. The old one is refused at once; its tokens stay valid. */
  rotateClientSecret(newSecret?: string): string {
    return this.#parts.application.rotateClientSecret(newSecret);
  }

  /** From now on, every token issued until now is answered with 401. */
  revokeTokens(): void {
    this.#parts.issuer.revokeAll();
  }

  /** From now on, this token is answered with 401. */
  revokeToken(accessToken: string): void {
    this.#parts.issuer.revoke(accessToken);
  }

  /** A token as the token endpoint would issue it, or a foreign or expired one. */
  issueToken(request: AccessTokenRequest = {}): Promise<string> {
    const token = this.#parts.issuer.issue({
      environment: request.environment ?? 'production',
      clientId: this.clientId,
      scope: request.scope ?? 'api',
      lifetime: request.lifetime ?? this.tokenLifetime,
      foreign: request.foreign,
    });
    return Promise.resolve(token);
  }

  /** Another client certificate, with its key. */
  async issueCertificate(request: ClientCertificateRequest = {}): Promise<IssuedCertificate> {
    const authority = request.foreign ? await this.#foreign() : this.#parts.authority;
    return authority.issue({ client: true }, request);
  }

  /**
   * Revokes a client certificate: new connections are refused with `certificate_revoked` (or an HTML 400), calls on
   * open ones with an HTML 400. Default: the application's.
   */
  revokeCertificate(certificate: Pick<IssuedCertificate, 'fingerprint256'> = this.application): void {
    this.#revoked.add(certificate.fingerprint256);
  }

  /**
   * Presents another server certificate to new connections, and ends the open ones. Without an argument: the first one
   * again.
   */
  async useServerCertificate(request?: ServerCertificateRequest): Promise<void> {
    const authority = request?.foreign ? await this.#foreign() : this.#parts.authority;
    const { names = SERVER_NAMES, notBefore, notAfter } = request ?? {};
    const identity = request
      ? await authority.issue({ server: names }, { commonName: names[0], notBefore, notAfter })
      : this.#parts.server;
    for (const each of this.#startedServers().named(request?.face)) {
      each.useIdentity(serverIdentity(identity, authority));
      each.dropConnections();
    }
  }

  /** Ends every open connection, of one server or all. The servers continue to listen. */
  dropConnections(face?: SimulatorFace): void {
    for (const each of this.#startedServers().named(face)) each.dropConnections();
  }

  /** Options of `ServiceModule.forRoot()` for this simulator. */
  moduleOptions(mode: SimulatorModeOptions = {}): SimulatorModuleOptions {
    const service = {
      urls: this.urls,
      application: this.application,
      appToken: this.appToken,
      appTokenHeader: this.#appTokenHeader,
      clientId: this.clientId,
      clientSecret: this.clientSecret,
      chain: this.chain,
    };
    return moduleOptionsFor(service, mode);
  }

  /** The same as environment variables. With `name`: those of a named module (`SERVICE_<NAME>_...`). */
  env({ name, ...mode }: SimulatorModeOptions & { name?: string } = {}): Record<string, string> {
    return environmentFor(this.moduleOptions(mode), name);
  }

  /** Ends all connections and closes all servers. `requests` can still be read. May be called again. */
  stop(): Promise<void> {
    this.#stopped ??= this.#close();
    return this.#stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #close(): Promise<void> {
    this.#log.close();
    this.#faults.clear();
    await this.#startedServers().close();
  }

  async #listen(): Promise<void> {
    const { options, authority, application, issuer, server } = this.#parts;
    this.#servers = await startServers({
      options,
      identity: serverIdentity(server, authority),
      clientAuthorities: authority.chain,
      context: {
        log: this.#log,
        faults: this.#faults,
        revoked: this.#revoked,
        refusals: this.#refusals,
        onRequest: options.onRequest,
        onRefusal: options.onRefusal,
      },
      ...responders({
        options,
        appTokenHeader: this.#appTokenHeader,
        application,
        issuer,
        customers: this.#createdCustomers,
        tokenLifetime: () => this.tokenLifetime,
      }),
    });
  }

  get #appTokenHeader(): string {
    return this.#parts.options.appTokenHeader ?? DEFAULT_HEADER;
  }

  #startedServers(): ServerGroup {
    if (this.#servers === undefined) throw new Error('The simulator was not started');
    return this.#servers;
  }

  #foreign(): Promise<CertificateAuthority> {
    this.#foreignAuthority ??= CertificateAuthority.create('Unknown');
    return this.#foreignAuthority;
  }
}

/** The server sends its certificate and the intermediate, as a well-kept server does. */
function serverIdentity(issued: IssuedCertificate, authority: CertificateAuthority) {
  return { certificate: issued.certificate + authority.intermediate, privateKey: issued.privateKey };
}

function after(seconds: number | undefined): Date | undefined {
  return seconds === undefined ? undefined : new Date(Date.now() + seconds * 1000);
}
