import { type ClientRequest } from 'node:http';
import { type Socket } from 'node:net';
import { type TLSSocket } from 'node:tls';
import { type ExchangePhase } from './exchange.types.js';

/** How far a request got: what a fault says about whether the server can have acted. */
export class ExchangeProgress {
  phase: ExchangePhase = 'connecting';
  reusedSocket = false;

  follow(request: ClientRequest): void {
    request.on('socket', (socket: Socket | TLSSocket) => {
      this.reusedSocket = request.reusedSocket;
      const secure = 'secureConnecting' in socket;
      const pending = secure ? socket.secureConnecting : socket.connecting;
      if (pending) socket.once(secure ? 'secureConnect' : 'connect', () => this.#reach('sent'));
      else this.#reach('sent');
    });
  }

  answering(): void {
    this.#reach('answering');
  }

  #reach(phase: ExchangePhase): void {
    this.phase = phase;
  }
}
