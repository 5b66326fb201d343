import { type SimulatedCustomer, type SimulatorAnswerer, type SimulatorRoutes } from './answer-book.js';
import { CertificateAuthority, type IssuedCertificate } from './certificate-authority.js';
import { type FaultHandle, type FaultRule } from './faults.js';
import {
  environmentFor,
  moduleOptionsFor,
  type SimulatorModeOptions,
  type SimulatorModuleOptions,
} from './module-options.js';
import { type SimulatorFace, type RecordedRequest } from './request-log.js';
import { ServerGroup } from './servers/server-group.js';
import { type ServerIdentity } from './servers/tls-server.js';
import { SimulatedService } from './simulated-service.js';
import {
  type AccessTokenRequest,
  type CertificateRefusal,
  type ClientCertificateRequest,
  type HandshakeCount,
  type ServerCertificateRequest,
  type SimulatorAddress,
  type SimulatorOptions,
} from './simulator.options.js';
import { sendWebhook } from './send-webhook.js';
import { type TokenSubject } from './token-issuer.js';

/** The certificates of the start. */
interface SimulatorCertificates {
  authority: CertificateAuthority;
  application: IssuedCertificate;
  server: IssuedCertificate;
}

/**
 * Simulates the service on loopback, over real TLS: its API addresses, its token endpoints and its refusals
 * (docs/service.md#calls). Each simulator makes its own certificates.
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
  /** The application's certificate and private key, as in the archive of the developer portal. */
  readonly application: IssuedCertificate;
  /** The six addresses: `https://127.0.0.1:<port>`, with the first of `serverNames` if given, and `basePath` if set. */
  readonly urls: Record<SimulatorAddress, string>;
  /** The service's public chain, PEM: what `tls.chain` takes. */
  readonly chain: string;
  readonly clientId: string;
  readonly appToken: string;
  /** Signs the webhooks of {@link sendWebhook}. */
  readonly webhookSecret: string;
  /** Customers created through POST /customers/v1, in order. */
  readonly customers: readonly SimulatedCustomer[];
  /** All requests since the start or the last `clearRequests()`, in order of arrival. The list grows as they arrive. */
  readonly requests: readonly RecordedRequest[];
  /** Connections that were ended because of their client certificate, in order. */
  readonly refusals: readonly CertificateRefusal[];

  readonly #service: SimulatedService;
  readonly #made: SimulatorCertificates;
  readonly #servers: ServerGroup;
  #foreignAuthority?: Promise<CertificateAuthority>;
  #stopped?: Promise<void>;

  private constructor(service: SimulatedService, made: SimulatorCertificates, servers: ServerGroup) {
    this.#service = service;
    this.#made = made;
    this.#servers = servers;
    this.application = made.application;
    this.urls = servers.urls;
    this.chain = service.chain;
    this.clientId = service.clientId;
    this.appToken = service.appToken;
    this.webhookSecret = service.webhookSecret;
    this.customers = service.customers;
    this.requests = service.log.entries;
    this.refusals = service.refusals;
  }

  /**
   * Makes the certificates and starts all servers, on 127.0.0.1 unless `host` says another address.
   *
   * @throws Error if an optional peer is not installed, or a given port or address cannot be had
   */
  static async start(options: SimulatorOptions = {}): Promise<ServiceSimulator> {
    return ServiceSimulator.startWith(options, await CertificateAuthority.create('Simulated Service'));
  }

  /**
   * As `start()`, with certificates that were made before.
   *
   * @internal
   */
  static async startWith(
    options: SimulatorOptions,
    authority: CertificateAuthority,
    kept: Partial<Pick<SimulatorCertificates, 'application' | 'server'>> = {},
  ): Promise<ServiceSimulator> {
    const service = new SimulatedService(options, authority.chain);
    const { applicationLifetime: seconds } = options.certificates ?? {};
    const notAfter = seconds === undefined ? undefined : new Date(Date.now() + seconds * 1000);
    const [application, server] = await Promise.all([
      kept.application ??
        authority.issue({ client: true }, { organization: 'Simulated Application', notAfter }),
      kept.server ?? authority.issue({ server: service.serverNames }, { commonName: 'localhost' }),
    ]);
    const servers = await ServerGroup.start(service, identityOf(server, authority));
    return new ServiceSimulator(service, { authority, application, server }, servers);
  }

  /**
   * What `startWith()` takes.
   *
   * @internal
   */
  static certificatesOf(simulator: ServiceSimulator): SimulatorCertificates {
    return simulator.#made;
  }

  /** Seconds that tokens issued from now on live. May be changed at any time. */
  get tokenLifetime(): number {
    return this.#service.tokenLifetime;
  }

  set tokenLifetime(seconds: number) {
    this.#service.tokenLifetime = seconds;
  }

  /** The current one. */
  get clientSecret(): string {
    return this.#service.clientSecret;
  }

  /** The requests to a token endpoint. */
  get tokenRequests(): RecordedRequest[] {
    return this.requests.filter((request) => request.face === 'token');
  }

  /** All other requests. */
  get apiRequests(): RecordedRequest[] {
    return this.requests.filter((request) => request.face !== 'token');
  }

  /** TLS handshakes by server, since the start; `token` counts both environments. */
  get handshakes(): Record<SimulatorFace, HandshakeCount> {
    return this.#servers.handshakes;
  }

  /** Connections open now, over all servers. */
  get openConnections(): number {
    return this.#servers.openConnections;
  }

  /** Empties `requests`. */
  clearRequests(): void {
    this.#service.log.clear();
  }

  /**
   * Resolves to the first request that matches, past or future. It may not have been answered yet.
   *
   * @throws Error after `timeoutMs` (5,000), when the simulator is stopped, and what the predicate throws
   */
  waitForRequest(
    predicate: (request: RecordedRequest) => boolean,
    timeoutMs = 5_000,
  ): Promise<RecordedRequest> {
    return this.#service.log.waitFor(predicate, timeoutMs);
  }

  /**
   * Makes the next matching request (or connection) fail. Of several active faults, the first that matches is used.
   *
   * @throws TypeError for a fault, face or path that there is not
   * @example
   * simulator.fail({ face: 'token', fault: { status: 503 } });
   * simulator.fail({ path: '/banks/v1', times: 2, fault: 'reset' });
   * simulator.fail({ times: Infinity, when: () => Math.random() < 0.2, fault: { status: 429 } });
   */
  fail(rule: FaultRule): FaultHandle {
    return this.#service.faults.add(rule);
  }

  /** Ends all faults. */
  clearFaults(): void {
    this.#service.faults.clear();
  }

  /**
   * Answers calls of another path of the service, after their credentials were checked. Of several answers at a path, one
   * with a literal segment comes before one with a name, and the last counts. HEAD gets the answer of GET, without the
   * body, if it has none of its own.
   *
   * @param path `{id}` stands for any text in a segment, decoded
   * @throws TypeError for a method, path or status that no call can have, and for an answer with other keys, or with `json`
   * and `body`
   * @example
   * simulator.answer('GET', '/accounts/v1/{id}', ({ pathParams }) => ({ json: pathParams }));
   * simulator.answer('DELETE', '/accounts/v1/{id}', { status: 204 });
   */
  answer(method: string, path: string, answer: SimulatorAnswerer): void;
  /**
   * The same for several routes: `{ 'GET /accounts/v1/{id}': { json: { ... } } }`.
   *
   * @throws TypeError that names the route
   * @example simulator.answer(knownApiRoutes());
   */
  answer(routes: SimulatorRoutes): void;
  answer(
    ...given: [method: string, path: string, answer: SimulatorAnswerer] | [routes: SimulatorRoutes]
  ): void {
    if (given.length === 1) this.#service.answers.addAll(given[0]);
    else this.#service.answers.add(...given);
  }

  /**
   * Sends a webhook, signed with {@link webhookSecret}, as the service does: a POST that ends after 10 s. It is sent once,
   * where the service would repeat it.
   *
   * @param body text or bytes; anything else is sent as JSON
   * @param headers in place of the simulator's: a wrong signature, another content type
   * @returns the answer of the application
   * @example expect((await simulator.sendWebhook(`${url}/webhook`, { type: 'entity.created' })).status).toBe(200);
   */
  sendWebhook(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const { webhookSecret, webhookHeader } = this.#service;
    return sendWebhook(url, body, { webhookSecret, webhookHeader, headers });
  }

  /** Sets another client secret and returns it. The old one is refused at once; its tokens stay valid. */
  rotateClientSecret(newSecret?: string): string {
    return this.#service.rotateClientSecret(newSecret);
  }

  /** From now on, every token issued until now is answered with 401. */
  revokeTokens(): void {
    this.#service.issuer.revokeAll();
  }

  /** A token as the token endpoint would issue it, or a foreign or expired one. */
  issueToken(request: AccessTokenRequest = {}): Promise<string> {
    const token = this.#service.issuer.issue({
      environment: request.environment ?? 'production',
      clientId: this.clientId,
      scope: request.scope ?? 'api',
      lifetime: request.lifetime ?? this.tokenLifetime,
      foreign: request.foreign,
    });
    return Promise.resolve(token);
  }

  /**
   * What a token is for, and when it ends (in the past if it was revoked); undefined if this simulator has not issued it,
   * or 50,000 after it.
   */
  issuedFor(accessToken: string): (TokenSubject & { expiresAt: Date }) | undefined {
    return this.#service.issuer.find(accessToken);
  }

  /** Another client certificate, with its key. */
  async issueCertificate(request: ClientCertificateRequest = {}): Promise<IssuedCertificate> {
    const authority = request.foreign ? await this.#foreign() : this.#made.authority;
    return authority.issue({ client: true }, request);
  }

  /**
   * Revokes a client certificate: new connections are refused with `certificate_revoked` (or an HTML 400), calls on
   * open ones with an HTML 400. Default: the application's.
   */
  revokeCertificate(certificate: Pick<IssuedCertificate, 'fingerprint256'> = this.application): void {
    this.#service.revoked.add(certificate.fingerprint256);
  }

  /**
   * Presents another server certificate to new connections, and ends the open ones. Without an argument: the first one
   * again.
   */
  async useServerCertificate(request?: ServerCertificateRequest): Promise<void> {
    const authority = request?.foreign ? await this.#foreign() : this.#made.authority;
    const { names = this.#service.serverNames, notBefore, notAfter } = request ?? {};
    const server = request
      ? await authority.issue({ server: names }, { commonName: names[0], notBefore, notAfter })
      : this.#made.server;
    const identity = identityOf(server, authority);
    for (const each of this.#servers.of(request?.face)) {
      each.useIdentity(identity);
      each.dropConnections();
    }
  }

  /** Ends every open connection, of one server or all. The servers continue to listen. */
  dropConnections(face?: SimulatorFace): void {
    for (const each of this.#servers.of(face)) each.dropConnections();
  }

  /** Options of `ServiceModule.forRoot()` for this simulator. */
  moduleOptions(mode: SimulatorModeOptions = {}): SimulatorModuleOptions {
    return moduleOptionsFor(this, this.#service, mode);
  }

  /**
   * Variables for this simulator: what the `.env` of the command has, with the PEMs in place of files. So the application
   * has all its credentials in each mode: `oauth` and `clientCertificate` are true by default, and `oauthBaseUrl` false.
   * With `name`: those of a named module (`SERVICE_<NAME>_...`).
   */
  env({
    name,
    oauth = this.#service.oauthEnabled,
    clientCertificate = true,
    oauthBaseUrl = false,
    ...mode
  }: SimulatorModeOptions & { name?: string | undefined } = {}): Record<string, string> {
    return environmentFor(this.moduleOptions({ ...mode, oauth, clientCertificate, oauthBaseUrl }), name);
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
    this.#service.log.close();
    this.#service.faults.clear();
    await this.#servers.close();
  }

  #foreign(): Promise<CertificateAuthority> {
    this.#foreignAuthority ??= CertificateAuthority.create('Unknown');
    return this.#foreignAuthority;
  }
}

/** The server sends its certificate and the intermediate, as a well-kept server does. */
function identityOf(
  { certificate, privateKey }: IssuedCertificate,
  authority: CertificateAuthority,
): ServerIdentity {
  return { certificate: certificate + authority.pems.intermediate, privateKey };
}
