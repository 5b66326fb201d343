import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DynamicModule } from '@nestjs/common';
import { ServiceModule } from 'nestjs-service';
import { type IssuedCertificate, knownApiRoutes, ServiceSimulator } from 'nestjs-service/testing';
import { CallLog } from '../calls/call-log.js';
import { MODES, type PlaygroundMode } from './modes.js';

/** How many requests each simulator keeps: enough for the calls that the page shows. */
const MAX_REQUESTS = 200;

/** Two applications at a simulated service: one with OAuth enabled, and one without. A simulator is one application. */
export class Simulators {
  readonly #folder = mkdtempSync(join(tmpdir(), 'nestjs-service-sample-'));
  readonly #secretFile = join(this.#folder, 'client-secret');
  /** Of the modes. The routes have another one, which the page does not replace. */
  #certificate: IssuedCertificate;

  private constructor(
    readonly withOAuth: ServiceSimulator,
    readonly withoutOAuth: ServiceSimulator,
    certificate: IssuedCertificate,
  ) {
    this.#certificate = certificate;
    this.#writeSecret();
  }

  static async start(): Promise<Simulators> {
    const [withOAuth, withoutOAuth] = await Promise.all([
      ServiceSimulator.start({ maxRequests: MAX_REQUESTS }),
      ServiceSimulator.start({ maxRequests: MAX_REQUESTS, oauth: { enabled: false } }),
    ]);
    for (const simulator of [withOAuth, withoutOAuth]) simulator.answer(knownApiRoutes());
    return new Simulators(withOAuth, withoutOAuth, await issue(withOAuth));
  }

  /** For the routes, as a .env would have them: mutual TLS as in production, and OAuth for customer tokens. */
  get variables(): Record<string, string> {
    const { SERVICE_CLIENT_SECRET: _, ...variables } = this.withOAuth.env({
      environment: 'production',
      authentication: 'mtls',
    });
    return { ...variables, SERVICE_CLIENT_SECRET_FILE: this.#secretFile };
  }

  of({ oauth }: PlaygroundMode): ServiceSimulator {
    return oauth === 'disabled' ? this.withoutOAuth : this.withOAuth;
  }

  /** A named ServiceModule for each mode. */
  modules(): DynamicModule[] {
    return MODES.map((mode) => this.#moduleOf(mode));
  }

  rotateSecret(): void {
    this.withOAuth.rotateClientSecret();
    this.#writeSecret();
  }

  /** Another client certificate, while the one before is refused. */
  async replaceCertificate(): Promise<void> {
    const refused = this.#certificate;
    this.#certificate = await issue(this.withOAuth);
    this.withOAuth.revokeCertificate(refused);
  }

  async stop(): Promise<void> {
    await Promise.all([this.withOAuth.stop(), this.withoutOAuth.stop()]);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #writeSecret(): void {
    writeFileSync(this.#secretFile, this.withOAuth.clientSecret, { mode: 0o600 });
  }

  /** Secret and certificate are functions, as from a vault: the module asks again for what was replaced. */
  #moduleOf(mode: PlaygroundMode): DynamicModule {
    const { name, environment, authentication, oauth } = mode;
    const simulator = this.of(mode);
    const { clientId, chain } = simulator;
    const given = {
      ...simulator.moduleOptions({ environment, authentication }),
      ...(!oauth && { oauth: { clientId, clientSecret: () => simulator.clientSecret } }),
      ...(authentication === 'mtls' && { tls: () => ({ ...pems(this.#certificate), chain }) }),
    };
    return ServiceModule.forRootAsync({
      name,
      inject: [CallLog],
      useFactory: (log: CallLog) => ({
        ...given,
        // So that a call that hangs is tried again within the time of the page.
        http: { onCall: log.add, requestId: randomUUID, attemptTimeout: 1_000 },
      }),
    });
  }
}

function issue(simulator: ServiceSimulator): Promise<IssuedCertificate> {
  return simulator.issueCertificate({ organization: 'Simulated Application' });
}

function pems({ certificate, privateKey }: IssuedCertificate): { certificate: string; privateKey: string } {
  return { certificate, privateKey };
}
