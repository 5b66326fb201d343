import { type SimulatedCustomer, type SimulatorAnswerer, type SimulatorRoutes } from './answer-book.js';
import {
  CertificateAuthority,
  type IssuedCertificate,
  SimulatorCertificates,
} from './certificate-authority.js';
import { type FaultHandle, type FaultRule } from './faults.js';
import {
  makeModuleOptions,
  makeVariables,
  type SimulatorModeOptions,
  type SimulatorModuleOptions,
} from './module-options.js';
import { type SimulatorFace, type RecordedRequest } from './request-log.js';
import { ServerGroup } from './servers/server-group.js';
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
import { type TokenSubject } from './token-issuer.js';

/**
 * Simulates the service on loopback, over real TLS: its API addresses, its token endpoints and its refusals
 * (docs/service.md#calls). Each simulator creates its own certificates.
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
  /** The application's certificate and private key, as the developer portal issues them. */
  readonly application: IssuedCertificate;
  /** The six addresses: `https://127.0.0.1:<port>`. The options `host`, `serverNames` and `basePath` change them. */
  readonly urls: Record<SimulatorAddress, string>;
  /** The service's public chain, as PEM, for the option `tls.chain`. */
  readonly chain: string;
  readonly clientId: string;
  readonly appToken: string;
  /** The secret with which {@link sendWebhook} signs. */
  readonly webhookSecret: string;
  /** The customers created through POST /customers/v1, in the order of their creation. */
  readonly customers: readonly SimulatedCustomer[];
  /** All requests since the start or the last `clearRequests()`, in the order of their arrival. The array grows. */
  readonly requests: readonly RecordedRequest[];
  /** The connections that were ended because of their client certificate, in order. */
  readonly refusals: readonly CertificateRefusal[];

  readonly #service: SimulatedService;
  readonly #certificates: SimulatorCertificates;
  readonly #servers: ServerGroup;
  #stopped?: Promise<void>;

  private constructor(service: SimulatedService, certificates: SimulatorCertificates, servers: ServerGroup) {
    this.#service = service;
    this.#certificates = certificates;
    this.#servers = servers;
    this.application = certificates.application;
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
   * Creates the certificates and starts all servers, on 127.0.0.1 by default.
   *
   * @throws Error if the optional peer is not installed, or a given port or address is not available
   */
  static async start(options: SimulatorOptions = {}): Promise<ServiceSimulator> {
    return ServiceSimulator.startWith(options, await CertificateAuthority.create('Simulated Service'));
  }

  /** Like `start()`, with certificates that exist already. @internal */
  static async startWith(
    options: SimulatorOptions,
    authority: CertificateAuthority,
    existing: Partial<Pick<SimulatorCertificates, 'application' | 'server'>> = {},
  ): Promise<ServiceSimulator> {
    const service = new SimulatedService(options, authority.chain);
    const certificates = await SimulatorCertificates.issue(authority, service, existing);
    const servers = await ServerGroup.start(service, certificates.serverIdentity);
    return new ServiceSimulator(service, certificates, servers);
  }

  /** The certificates of a simulator, for `startWith()`. @internal */
  static certificatesOf(simulator: ServiceSimulator): SimulatorCertificates {
    return simulator.#certificates;
  }

  /** The lifetime in seconds of tokens that are issued from now on. It can be changed at any time. */
  get tokenLifetime(): number {
    return this.#service.tokenLifetime;
  }

  set tokenLifetime(seconds: number) {
    this.#service.tokenLifetime = seconds;
  }

  /** The current client secret: see {@link rotateClientSecret}. */
  get clientSecret(): string {
    return this.#service.clientSecret;
  }

  /** The requests to the token endpoints. */
  get tokenRequests(): RecordedRequest[] {
    return this.requests.filter((request) => request.face === 'token');
  }

  /** All other requests. */
  get apiRequests(): RecordedRequest[] {
    return this.requests.filter((request) => request.face !== 'token');
  }

  /** The number of TLS handshakes of each server since the start. `token` counts both environments. */
  get handshakes(): Record<SimulatorFace, HandshakeCount> {
    return this.#servers.handshakes;
  }

  /** The number of connections that are open now, at all servers. */
  get openConnections(): number {
    return this.#servers.openConnections;
  }

  /** Empties `requests`. */
  clearRequests(): void {
    this.#service.log.clear();
  }

  /**
   * Resolves to the first request that matches: one that has arrived already, or else a later one. The response to it may not have
   * been sent yet.
   *
   * @param timeoutMs milliseconds to wait. Default: 5,000
   * @throws Error if no request matches in time, the simulator is stopped, or the predicate throws
   */
  waitForRequest(
    predicate: (request: RecordedRequest) => boolean,
    timeoutMs = 5_000,
  ): Promise<RecordedRequest> {
    return this.#service.log.waitFor(predicate, timeoutMs);
  }

  /**
   * Makes the next matching request (or connection) fail. If several active faults match, the one that was added first is
   * used.
   *
   * @throws TypeError for an invalid fault, face or path
   * @example
   * simulator.fail({ method: 'POST', path: '/customers/v1', fault: 'lost' });
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
   * Adds a response for a further path of the service. The simulator checks the credentials of a call before it responds.
   *
   * - A path with a literal segment takes precedence over one with a parameter.
   * - A later response replaces an earlier one for the same method and path.
   * - HEAD gets the response of GET, without the body, unless it has a response of its own.
   *
   * @param path `{id}` in it matches any text within a segment, and is decoded
   * @throws TypeError for an invalid method, path or response
   * @example
   * simulator.answer('GET', '/accounts/v1/{id}', ({ pathParams }) => ({ json: pathParams }));
   * simulator.answer('DELETE', '/accounts/v1/{id}', { status: 204 });
   */
  answer(method: string, path: string, answer: SimulatorAnswerer): void;
  /**
   * Adds responses for several routes: `{ 'GET /accounts/v1/{id}': { json: { ... } } }`.
   *
   * @throws TypeError that names the invalid route
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
   * Sends a webhook like the service: a POST, signed with {@link webhookSecret}, with a time limit of 10 s. Unlike the
   * service, the simulator does not repeat it after a failure.
   *
   * @param body text or bytes; anything else is sent as JSON
   * @param headers override those of the simulator, for example with a wrong signature
   * @returns the application's response
   * @example expect((await simulator.sendWebhook(`${url}/webhook`, { type: 'entity.created' })).status).toBe(200);
   */
  sendWebhook(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return this.#service.sendWebhook(url, body, headers);
  }

  /** Sets a new client secret and returns it. The old secret is refused at once. Tokens stay valid. */
  rotateClientSecret(newSecret?: string): string {
    return this.#service.rotateClientSecret(newSecret);
  }

  /** Revokes every token that was issued so far: calls with one get 401. */
  revokeTokens(): void {
    this.#service.issuer.revokeAll();
  }

  /** Issues a token without a token request. It can also be foreign or expired. */
  issueToken(request: AccessTokenRequest = {}): Promise<string> {
    return Promise.resolve(this.#service.issueToken(request));
  }

  /**
   * Returns what a token was issued for and when it expires (in the past if it was revoked). Undefined if this simulator has
   * not issued it, or has issued 50,000 tokens since.
   */
  issuedFor(accessToken: string): (TokenSubject & { expiresAt: Date }) | undefined {
    return this.#service.issuer.find(accessToken);
  }

  /** Issues another client certificate with a new key. */
  issueCertificate(request: ClientCertificateRequest = {}): Promise<IssuedCertificate> {
    return this.#certificates.issueForClient(request);
  }

  /**
   * Revokes a client certificate. New connections with it are refused with the alert `certificate_revoked` (or an HTML 400),
   * and calls on open connections with an HTML 400. Default: the application's certificate.
   */
  revokeCertificate(certificate: Pick<IssuedCertificate, 'fingerprint256'> = this.application): void {
    this.#service.revoked.add(certificate.fingerprint256);
  }

  /**
   * Presents another server certificate to new connections, and ends the open connections. Without an argument, the servers
   * present their first certificate again.
   */
  async useServerCertificate(request?: ServerCertificateRequest): Promise<void> {
    const identity = request
      ? await this.#certificates.issueForServers(request, this.#service.serverNames)
      : this.#certificates.serverIdentity;
    for (const each of this.#servers.serversOf(request?.face)) each.useIdentity(identity);
    this.dropConnections(request?.face);
  }

  /** Ends every open connection of one server, or of all. The servers continue to listen. */
  dropConnections(face?: SimulatorFace): void {
    for (const each of this.#servers.serversOf(face)) each.dropConnections();
  }

  /** Makes the options of `ServiceModule.forRoot()` for this simulator. */
  moduleOptions(mode: SimulatorModeOptions = {}): SimulatorModuleOptions {
    return makeModuleOptions(this, this.#service, mode);
  }

  /**
   * Makes the environment variables for this simulator, like the `.env` of the command, but with PEMs instead of files. By
   * default they contain all credentials, whatever the mode: `oauth` and `clientCertificate` are true, and `oauthBaseUrl` is
   * false. With `name`, they are those of a named module (`SERVICE_<NAME>_...`).
   */
  env(mode: SimulatorModeOptions & { name?: string | undefined } = {}): Record<string, string> {
    return makeVariables(this, this.#service, mode);
  }

  /** Ends all connections and closes all servers. `requests` can still be read. Calling it again does nothing. */
  stop(): Promise<void> {
    this.#service.log.close();
    this.#service.faults.clear();
    return (this.#stopped ??= this.#servers.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
