import { type ClientRequest } from 'node:http';
import { type Socket } from 'node:net';
import { type TLSSocket } from 'node:tls';
import {
  type ClassifiedError,
  isHandshakeAlert,
  mayBeCertificateRefusal,
  type ExchangeFaultDetails,
  type ExchangePhase,
  isUnsent,
} from './fault.js';
import { type ExchangeConnection } from './io.js';

/** Observes how far a request gets, which decides whether the server can have executed it. */
export class ExchangeProgress {
  phase: ExchangePhase = 'queued';
  reusedSocket = false;
  /** When the wait for a free connection ended, on the monotonic clock. */
  socketAt: number | undefined = undefined;
  /** What the agent knows about the connection. */
  connection: ExchangeConnection | undefined = undefined;
  #socket: Socket | TLSSocket | undefined = undefined;
  #isTls13 = false;
  #isAccepted = false;
  /** The server has sent its ServerHello, so an alert or reset from now on may be about our certificate. */
  #hasServerHello = false;
  readonly #hasCertificate: boolean;

  /** @param hasCertificate whether a client certificate is offered to servers that ask for one */
  constructor(hasCertificate = false) {
    this.#hasCertificate = hasCertificate;
  }

  observe(request: ClientRequest): void {
    request.on('socket', (socket: Socket | TLSSocket) => {
      this.socketAt = performance.now();
      this.phase = 'connecting';
      this.#socket = socket;
      // Node does not set `reusedSocket` for a request that waited in the agent's queue.
      this.reusedSocket = request.reusedSocket || socket.bytesRead > 0;
      const secure = 'secureConnecting' in socket;
      const pending = secure ? socket.secureConnecting : socket.connecting;
      // On a preconnected socket the handshake may be over, and its session ticket may have arrived already.
      this.#isAccepted = secure && !pending && this.connection?.hasTicket !== false;
      if (secure && !this.reusedSocket) socket.once('session', () => (this.#isAccepted = true));
      if (!pending) return this.#onConnected();
      socket.once(secure ? 'secureConnect' : 'connect', () => this.#onConnected());
      // Node emits `keylog` from the ServerHello on. The listener ignores the key material.
      if (secure && this.#hasCertificate) socket.once('keylog', () => (this.#hasServerHello = true));
      // A real socket accepts the request only once TCP has connected. The socket of a mock (nock 15, msw 3) accepts it before
      // and never emits `connect`. Count the request as sent then, so that a slow mock looks like a slow service.
      request.once('finish', () => socket.connecting && !socket.destroyed && this.#onConnected());
    });
  }

  /** The details of a fault that occurs at this moment. */
  describeFault({
    kind,
    alert,
    certificateRefused: isSaid = false,
  }: Partial<ClassifiedError>): Omit<ExchangeFaultDetails, 'kind'> {
    const { phase, reusedSocket } = this;
    const addresses = this.#socket?.autoSelectFamilyAttemptedAddresses;
    // Over TLS 1.3, the server refuses our certificate only after the request was sent. It does not read the request then.
    const isAfterSending = phase === 'sent' && this.isHandshakePending;
    const isFailedHandshake = isAfterSending && isHandshakeAlert({ alert });
    const certificateRefused = isSaid || (isFailedHandshake && this.#hasCertificate);
    const mayBeRefusal = this.#hasCertificate && (isAfterSending || (isUnsent(this) && this.#hasServerHello));
    return {
      // An error with the kind `proxy` occurs only before the tunnel is open, so nothing of the request was sent.
      phase: kind === 'proxy' ? 'connecting' : phase,
      reusedSocket,
      certificateRefused,
      certificateSuspected: !certificateRefused && mayBeRefusal && mayBeCertificateRefusal({ kind, alert }),
      refusedInHandshake: isFailedHandshake || (isSaid && this.isHandshakePending),
      ...(phase === 'connecting' && addresses && { addresses }),
    };
  }

  /**
   * Whether a fatal alert can still mean that the server refuses our handshake. In TLS 1.3 the client sends its certificate and
   * its first request together, so the refusal arrives after the request was sent. In TLS 1.2 it arrives before. The server
   * has accepted the handshake as soon as there is a session ticket
   * (https://www.rfc-editor.org/rfc/rfc8446#section-4.6.1), a byte of a response (1xx too), or a later request.
   */
  get isHandshakePending(): boolean {
    if (isUnsent(this)) return true;
    if (this.phase !== 'sent' || !this.#isTls13 || this.#isAccepted) return false;
    return !this.reusedSocket && this.#socket?.bytesRead === 0;
  }

  #onConnected(): void {
    if (this.phase !== 'connecting') return;
    this.phase = 'sent';
    const socket = this.#socket;
    if (this.reusedSocket || socket === undefined || !('getProtocol' in socket)) return;
    // Read the protocol now, because a failed socket no longer has it.
    this.#isTls13 = socket.getProtocol() === 'TLSv1.3';
  }
}
