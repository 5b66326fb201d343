import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DynamicModule } from '@nestjs/common';
import { ServiceModule } from 'nestjs-service';
import { type IssuedCertificate, knownApiRoutes, ServiceSimulator } from 'nestjs-service/testing';
import { CallLog } from '../calls/call-log.js';
import { MODES, type PlaygroundMode } from './modes.js';

/** How many requests each simulator keeps. The page shows the last 20 calls, and each may have several attempts. */
const MAX_REQUESTS = 200;

/** Two simulators, because each simulates one application at the service: one with OAuth enabled, and one without. */
export class Simulators {
  readonly #folder = mkdtempSync(join(tmpdir(), 'nestjs-service-sample-'));
  readonly #secretFile = join(this.#folder, 'client-secret');
  /** The client certificate of the modes. The application's routes use another one, which the page does not replace. */
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

  /** The SERVICE_* variables for the application's routes: production with mutual TLS, and OAuth for customer tokens. */
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

  /** Makes a named ServiceModule for each mode. */
  makeModules(): DynamicModule[] {
    return MODES.map((mode) => this.#makeModule(mode));
  }

  rotateSecret(): void {
    this.withOAuth.rotateClientSecret();
    this.#writeSecret();
  }

  /** Issues another client certificate, and revokes the previous one. */
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

  /** Secret and certificate are functions, as with a vault, so that the module reads them again after they were replaced. */
  #makeModule(mode: PlaygroundMode): DynamicModule {
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
        // The fault "Time-out" hangs one attempt. This limit lets the retry happen before the page gives up after 3 s.
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
