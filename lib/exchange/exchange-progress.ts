import { type ClientRequest } from 'node:http';
import { type Socket } from 'node:net';
import { type TLSSocket } from 'node:tls';
import { type ClassifiedError, isHandshakeAlert, mayBeCertificateRefusal } from './classify.js';
import {
  type ExchangeConnection,
  type ExchangeFaultDetails,
  type ExchangePhase,
  isUnsent,
} from './exchange.types.js';

/** Follows how far a request gets, which decides whether the server can have acted on it. */
export class ExchangeProgress {
  phase: ExchangePhase = 'queued';
  reusedSocket = false;
  /** When the wait for a free connection ended, on the monotonic clock. */
  socketAt: number | undefined = undefined;
  /** What the agent knows of its connection. */
  connection: ExchangeConnection | undefined = undefined;
  #socket: Socket | TLSSocket | undefined = undefined;
  #isTls13 = false;
  #isAccepted = false;
  /** The server has answered the ClientHello: what it sends from now on may be about our certificate. */
  #isHelloAnswered = false;
  readonly #hasCertificate: boolean;

  /** @param hasCertificate a client certificate is offered to a server that asks for one */
  constructor(hasCertificate = false) {
    this.#hasCertificate = hasCertificate;
  }

  observe(request: ClientRequest): void {
    request.on('socket', (socket: Socket | TLSSocket) => {
      this.socketAt = performance.now();
      this.phase = 'connecting';
      this.#socket = socket;
      // Node does not set its flag for a request that waited in the agent's queue.
      this.reusedSocket = request.reusedSocket || socket.bytesRead > 0;
      const secure = 'secureConnecting' in socket;
      const pending = secure ? socket.secureConnecting : socket.connecting;
      // If the handshake was over before, its ticket may have come already.
      this.#isAccepted = secure && !pending && this.connection?.hasTicket !== false;
      if (secure && !this.reusedSocket) socket.once('session', () => (this.#isAccepted = true));
      if (!pending) return this.#connected();
      socket.once(secure ? 'secureConnect' : 'connect', () => this.#connected());
      // Key material exists from the ServerHello on. The listener takes none of it.
      if (secure && this.#hasCertificate) socket.once('keylog', () => (this.#isHelloAnswered = true));
      // A real socket takes the request only once TCP has connected. The one of a mock (nock 15, msw 3) takes it before, and
      // never says that it is connected: the request counts as sent, so that a slow mock is like a slow service.
      request.once('finish', () => socket.connecting && !socket.destroyed && this.#connected());
    });
  }

  /** The details of a fault that comes now. */
  describeFault({
    kind,
    alert,
    certificateRefused: isSaid = false,
  }: Partial<ClassifiedError>): Omit<ExchangeFaultDetails, 'kind'> {
    const { phase, reusedSocket } = this;
    const addresses = this.#socket?.autoSelectFamilyAttemptedAddresses;
    // Over TLS 1.3, the verdict on our certificate comes after the request was sent. A server that refuses does not read it.
    const isVerdict = phase === 'sent' && this.isHandshakePending;
    const isFailedHandshake = isVerdict && isHandshakeAlert({ alert });
    const certificateRefused = isSaid || (isFailedHandshake && this.#hasCertificate);
    const mayBeVerdict = this.#hasCertificate && (isVerdict || (isUnsent(this) && this.#isHelloAnswered));
    return {
      // A tunnel fails as such only as long as nothing of the request has passed it.
      phase: kind === 'proxy' ? 'connecting' : phase,
      reusedSocket,
      certificateRefused,
      certificateSuspected: !certificateRefused && mayBeVerdict && mayBeCertificateRefusal({ kind, alert }),
      refusedInHandshake: isFailedHandshake || (isSaid && this.isHandshakePending),
      ...(phase === 'connecting' && addresses && { addresses }),
    };
  }

  /**
   * Whether a fatal alert can still be the server's verdict on our handshake. In TLS 1.3 the client sends its
   * certificate and its first request together, so the verdict comes after the request was sent. In TLS 1.2 it comes
   * before. A session ticket (RFC 8446, 4.6.1), a later request, or a byte of an answer (1xx too) shows that the server
   * had accepted the handshake.
   */
  get isHandshakePending(): boolean {
    if (isUnsent(this)) return true;
    if (this.phase !== 'sent' || !this.#isTls13 || this.#isAccepted) return false;
    return !this.reusedSocket && this.#socket?.bytesRead === 0;
  }

  #connected(): void {
    if (this.phase !== 'connecting') return;
    this.phase = 'sent';
    const socket = this.#socket;
    if (this.reusedSocket || socket === undefined || !('getProtocol' in socket)) return;
    // Asked now: a socket that has failed does not know it any more.
    this.#isTls13 = socket.getProtocol() === 'TLSv1.3';
  }
}
