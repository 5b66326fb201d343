import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, isIPv6, type Socket } from 'node:net';
import { type TlsOptions, type TLSSocket } from 'node:tls';
import { inspect } from 'node:util';
import { type ServiceEnvironment } from '../../config/options.js';
import { playFault } from '../fault-player.js';
import { makeRecord, readRequestBody, type RecordedRequest, type SimulatorFace } from '../request-log.js';
import { LOOPBACK, type SimulatedService } from '../simulated-service.js';
import { type HandshakeCount } from '../simulator.options.js';
import { failure, nginxRefusal, sendAnswer, type SimulatedAnswer, waitUnlessClosed } from './answer.js';
import {
  type CertificateVerdict,
  checkClientCertificate,
  sendTlsAlert,
  type TlsAlert,
} from './client-certificate.js';

/** A server's certificate and key, as PEM. The certificate may be followed by its intermediate. */
export interface ServerIdentity {
  certificate: string;
  privateKey: string;
}

/** The differences between the six servers. */
export interface ServerPlan {
  face: SimulatorFace;
  environment: ServiceEnvironment;
  /** `required`: a connection without a client certificate is refused. */
  clientCertificate: 'none' | 'requested' | 'required';
}

type Respond = (request: RecordedRequest) => SimulatedAnswer | Promise<SimulatedAnswer>;

interface OpenConnection {
  number: number;
  raw: Socket;
  verdict: CertificateVerdict;
  ended: boolean;
}

/** One HTTPS server of the simulator. It checks client certificates, records requests, injects faults and sends responses. */
export class TlsServer {
  /** Has the first name of the server certificate as its host. Stays the same after the server is closed. */
  origin = '';
  readonly handshakes: HandshakeCount = { total: 0, resumed: 0, refused: 0 };
  readonly face: SimulatorFace;
  readonly #plan: ServerPlan;
  readonly #service: SimulatedService;
  readonly #respond: Respond;
  readonly #server: Server;
  readonly #sockets = new Map<string, Socket>();
  readonly #trafficSecrets = new WeakMap<TLSSocket, Buffer>();
  readonly #connections = new WeakMap<object, OpenConnection>();

  private constructor(
    plan: ServerPlan,
    identity: ServerIdentity,
    service: SimulatedService,
    respond: Respond,
  ) {
    this.face = plan.face;
    this.#plan = plan;
    this.#service = service;
    this.#respond = respond;
    const { maxTlsVersion, keepAliveTimeoutMs = 5_000 } = service.options;
    this.#server = createServer({
      ...this.#secureContext(identity),
      requestCert: plan.clientCertificate !== 'none',
      // Node sends an alert for a missing certificate only on TLS 1.2. For TLS 1.3, `sendTlsAlert` does it.
      rejectUnauthorized:
        plan.clientCertificate === 'required' && !this.#refusesByAnswer && maxTlsVersion === 'TLSv1.2',
      keepAliveTimeout: keepAliveTimeoutMs,
    });
    this.#server.on('connection', (socket: Socket) => this.#accept(socket));
    this.#server.on('keylog', (line, socket) => this.#keepTrafficSecret(line, socket));
    this.#server.on('tlsClientError', () => undefined);
    // This must run before the HTTP server's own listener, which starts to read requests.
    this.#server.prependListener('secureConnection', (socket) => this.#checkCertificate(socket));
    this.#server.on('request', (request, response) => void this.#serve(request, response));
  }

  /**
   * Starts a server. Rejects if the port is in use.
   *
   * @param respond makes the response when no fault is injected
   */
  static async listen(
    plan: ServerPlan,
    port: number,
    identity: ServerIdentity,
    service: SimulatedService,
    respond: Respond,
  ): Promise<TlsServer> {
    const started = new TlsServer(plan, identity, service, respond);
    const server = started.#server.listen(port, service.options.host ?? LOOPBACK);
    await once(server, 'listening');
    const [name = ''] = service.serverNames;
    const host = isIPv6(name) ? `[${name}]` : name;
    started.origin = `https://${host}:${(server.address() as AddressInfo).port}`;
    return started;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  /** Presents another certificate to new connections. */
  useIdentity(identity: ServerIdentity): void {
    this.#server.setSecureContext(this.#secureContext(identity));
  }

  /** Ends every connection. The server continues to listen. */
  dropConnections(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.dropConnections();
    });
  }

  #secureContext({ certificate, privateKey }: ServerIdentity): TlsOptions {
    const { chain, options } = this.#service;
    const { maxTlsVersion = 'TLSv1.3' } = options;
    const versions = { minVersion: 'TLSv1.2', maxVersion: maxTlsVersion } as const;
    return { cert: certificate, key: privateKey, ca: chain, ...versions };
  }

  /** Certificates are refused with an HTML 400 like nginx does it, and not in the handshake. */
  get #refusesByAnswer(): boolean {
    return this.#service.options.clientCertificateRefusal === 'http-400';
  }

  #accept(socket: Socket): void {
    const key = connectionKey(socket);
    this.#sockets.set(key, socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(key));
    if (this.#service.faults.takeForConnection(this.face, 'accepted')) socket.resetAndDestroy();
  }

  #keepTrafficSecret(line: Buffer, socket: TLSSocket): void {
    const [label, , secret] = line.toString('latin1').trim().split(' ');
    if (label === 'SERVER_TRAFFIC_SECRET_0') this.#trafficSecrets.set(socket, Buffer.from(secret, 'hex'));
  }

  #checkCertificate(socket: TLSSocket): void {
    const raw = this.#sockets.get(connectionKey(socket));
    if (raw === undefined) return void socket.destroy();
    this.handshakes.total += 1;
    if (socket.isSessionReused()) this.handshakes.resumed += 1;
    const verdict = checkClientCertificate(socket, this.#service.revoked);
    const connection = { number: this.handshakes.total, raw, verdict, ended: false };
    this.#connections.set(socket, connection);

    const alert = this.#alertFor(verdict);
    if (alert === undefined) return;
    connection.ended = true;
    this.handshakes.refused += 1;
    // This must happen within the `secureConnection` event. After it, OpenSSL writes session tickets, and for the client a
    // ticket means that the server has accepted the certificate.
    sendTlsAlert(socket, raw, alert, this.#trafficSecrets.get(socket));
  }

  #alertFor(verdict: CertificateVerdict): TlsAlert | undefined {
    const fault = this.#service.faults.takeForConnection(this.face, 'handshaken');
    if (typeof fault === 'object') return fault.tlsAlert;
    const { face, clientCertificate } = this.#plan;
    if (clientCertificate === 'none' || this.#refusesByAnswer) return undefined;
    if (verdict.state === 'trusted') return undefined;
    if (verdict.state === 'absent' && clientCertificate !== 'required') return undefined;
    const refused = {
      face,
      alert: verdict.alert,
      certificateSubject: verdict.subject,
      certificateFingerprint256: verdict.fingerprint256,
    };
    const { refusals, maxRequests } = this.#service;
    refusals.push(refused);
    if (refusals.length > maxRequests) refusals.shift();
    runCallback('onRefusal', () => this.#service.options.onRefusal?.(refused));
    return verdict.alert;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined || connection.ended) return;
    const body = await readRequestBody(request);
    if (body === undefined) return;
    const { number, raw, verdict } = connection;
    const { faults, log, options } = this.#service;
    const record = makeRecord(request, body, { ...this.#plan, verdict, number });
    const readAt = performance.now();
    response.once('close', () => {
      runCallback('onRequest', () => options.onRequest?.(record, performance.now() - readAt));
    });
    log.add(record);
    const answer = async () => this.#refuseCertificate(verdict) ?? this.#respond(record);

    try {
      const { delayMs = 0 } = options;
      const delay = typeof delayMs === 'number' ? delayMs : (delayMs[this.face] ?? 0);
      if (delay > 0) await waitUnlessClosed(response, delay);
      const fault = faults.takeForRequest(record);
      if (fault !== undefined) await playFault(fault, { record, response, raw, answer });
      else sendAnswer(response, record, await answer());
    } catch (error) {
      // For example an error in the test's own `when`. The response shows it to the test.
      const message = error instanceof Error ? error.message : 'not an Error';
      record.error = message;
      if (!response.headersSent) sendAnswer(response, record, failure(500, 'SIMULATOR_FAULT', message));
      else raw.destroy();
    }
  }

  /**
   * Returns the HTML 400 with which nginx refuses a certificate after the handshake. In the mode `tls-alert` that happens
   * only on an open connection whose certificate has been revoked since its handshake.
   */
  #refuseCertificate(verdict: CertificateVerdict): SimulatedAnswer | undefined {
    if (this.#plan.clientCertificate === 'none') return undefined;
    const revoked = verdict.fingerprint256 !== undefined && this.#service.revoked.has(verdict.fingerprint256);
    if (verdict.state === 'refused' || revoked) return nginxRefusal('The SSL certificate error');
    if (verdict.state === 'absent' && this.#plan.clientCertificate === 'required') {
      return nginxRefusal('No required SSL certificate was sent');
    }
    return undefined;
  }
}

/**
 * The same key for a TCP socket and the TLS socket on it. It includes the addresses, because clients on two hosts may have
 * the same port.
 */
function connectionKey({ localAddress, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${remoteAddress} ${remotePort}`;
}

/**
 * Runs a callback of the test inside an event handler. Nobody could catch an error there, and it would end the process, so
 * it becomes a warning of the process.
 */
function runCallback<Result>(name: string, callback: () => Result): Result | undefined {
  try {
    return callback();
  } catch (error) {
    process.emitWarning(`${name} of ServiceSimulator threw: ${inspect(error)}`);
    return undefined;
  }
}
