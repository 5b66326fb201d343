import { type HandshakeCount, type SimulatorAddress, type SimulatorFace } from '../simulator.options.js';
import { type TlsFace } from './tls-face.js';

/** The servers of one simulator. */
export class FaceGroup {
  readonly #byAddress: Readonly<Record<SimulatorAddress, TlsFace>>;

  constructor(byAddress: Readonly<Record<SimulatorAddress, TlsFace>>) {
    this.#byAddress = byAddress;
  }

  /** Those of this name, or all. */
  named(name?: SimulatorFace): TlsFace[] {
    const faces = Object.values(this.#byAddress);
    return name === undefined ? faces : faces.filter((face) => face.name === name);
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
    return this.named().reduce((total, face) => total + face.openConnections, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.named().map((face) => face.close()));
  }

  #handshakesOf(name: SimulatorFace): HandshakeCount {
    const counts = this.named(name).map(({ handshakes }) => handshakes);
    const sum = (key: keyof HandshakeCount) => counts.reduce((total, each) => total + each[key], 0);
    return { total: sum('total'), resumed: sum('resumed'), refused: sum('refused') };
  }
}
