import { type DynamicModule } from '@nestjs/common';
import { ServiceModule } from 'nestjs-service';
import { type IssuedCertificate, ServiceSimulator } from 'nestjs-service/testing';
import { CallLog } from '../calls/call-log.js';
import { MODES, type PlaygroundMode } from './modes.js';

/**
 * A simulator of the page's own. The routes of the application have another one, so no fault of the page reaches them.
 */
export class PageSimulator {
  #certificate: IssuedCertificate;

  private constructor(readonly simulator: ServiceSimulator) {
    this.#certificate = simulator.application;
  }

  static async start(): Promise<PageSimulator> {
    return new PageSimulator(await ServiceSimulator.start());
  }

  /** A named ServiceModule for each mode. */
  modules(): DynamicModule[] {
    return MODES.map((mode) => this.#moduleOf(mode));
  }

  urlOf({ address }: PlaygroundMode): string {
    return this.simulator.urls[address];
  }

  /** Another client certificate, while the one before is refused. */
  async replaceCertificate(): Promise<void> {
    const refused = this.#certificate;
    this.#certificate = await this.simulator.issueCertificate({ commonName: this.simulator.clientId });
    this.simulator.revokeCertificate(refused);
  }

  /** Secret and certificate are functions, as from a vault: the module asks again for what was replaced. */
  #moduleOf({ name, environment, authentication }: PlaygroundMode): DynamicModule {
    const { simulator } = this;
    const { clientId, chain } = simulator;
    const options = simulator.moduleOptions({ environment, authentication, oauth: true });
    const given = {
      ...options,
      oauth: { clientId, clientSecret: () => simulator.clientSecret },
      ...(authentication === 'mtls' && { tls: () => ({ ...pems(this.#certificate), chain }) }),
    };
    return ServiceModule.forRootAsync({
      name,
      inject: [CallLog],
      useFactory: (log: CallLog) => ({ ...given, http: { onCall: log.add } }),
    });
  }
}

function pems({ certificate, privateKey }: IssuedCertificate): { certificate: string; privateKey: string } {
  return { certificate, privateKey };
}
