import { type SimulatorFace } from '../request-log.js';
import { type HandshakeCount, type SimulatorAddress } from '../simulator.options.js';
import { type TlsServer } from './tls-server.js';

/** The servers of one simulator. */
export class ServerGroup {
  readonly #byAddress: Readonly<Record<SimulatorAddress, TlsServer>>;

  constructor(byAddress: Readonly<Record<SimulatorAddress, TlsServer>>) {
    this.#byAddress = byAddress;
  }

  /** The servers of this name, or all. */
  named(name?: SimulatorFace): TlsServer[] {
    const servers = Object.values(this.#byAddress);
    return name === undefined ? servers : servers.filter((server) => server.name === name);
  }

  urls(basePath: string): Record<SimulatorAddress, string> {
    const entries = Object.entries(this.#byAddress).map(([address, { origin }]) => [
      address,
      origin + basePath,
    ]);
    return Object.fromEntries(entries) as Record<SimulatorAddress, string>;
  }

  get handshakes(): Record<SimulatorFace, HandshakeCount> {
    return {
      base: this.#handshakesOf('base'),
      'oauth-base': this.#handshakesOf('oauth-base'),
      sandbox: this.#handshakesOf('sandbox'),
      'sandbox-mtls': this.#handshakesOf('sandbox-mtls'),
      token: this.#handshakesOf('token'),
    };
  }

  get openConnections(): number {
    return this.named().reduce((total, server) => total + server.openConnections, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.named().map((server) => server.close()));
  }

  #handshakesOf(name: SimulatorFace): HandshakeCount {
    const counts = this.named(name).map(({ handshakes }) => handshakes);
    const sum = (key: keyof HandshakeCount) => counts.reduce((total, each) => total + each[key], 0);
    return { total: sum('total'), resumed: sum('resumed'), refused: sum('refused') };
  }
}
