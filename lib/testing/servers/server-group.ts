import { type RecordedRequest, type SimulatorFace } from '../request-log.js';
import { type SimulatedService } from '../simulated-service.js';
import { type HandshakeCount, type SimulatorAddress } from '../simulator.options.js';
import { answerApiCall, checkAccess } from './answer-api-call.js';
import { failure, type SimulatedAnswer } from './answer.js';
import { answerTokenRequest } from './answer-token-request.js';
import { type ServerIdentity, type ServerPlan, TlsServer } from './tls-server.js';

const PLANS: Readonly<Record<SimulatorAddress, ServerPlan>> = {
  baseUrl: { face: 'base', environment: 'production', clientCertificate: 'requested' },
  oauthBaseUrl: { face: 'oauth-base', environment: 'production', clientCertificate: 'requested' },
  sandboxUrl: { face: 'sandbox', environment: 'sandbox', clientCertificate: 'none' },
  sandboxMtlsUrl: { face: 'sandbox-mtls', environment: 'sandbox', clientCertificate: 'required' },
  authUrl: { face: 'token', environment: 'production', clientCertificate: 'requested' },
  sandboxAuthUrl: { face: 'token', environment: 'sandbox', clientCertificate: 'requested' },
};
const ADDRESSES = Object.keys(PLANS) as SimulatorAddress[];

/** The six servers of one simulator. */
export class ServerGroup {
  readonly #byAddress: Readonly<Record<SimulatorAddress, TlsServer>>;
  readonly #basePath: string;

  private constructor(byAddress: Readonly<Record<SimulatorAddress, TlsServer>>, basePath: string) {
    this.#byAddress = byAddress;
    this.#basePath = basePath;
  }

  /** Starts all servers. If one of them cannot listen, closes the others and rejects. */
  static async start(service: SimulatedService, identity: ServerIdentity): Promise<ServerGroup> {
    const { bun } = process.versions;
    // The sockets of an https server of Bun have no methods of TLSSocket, so each connection would end in an uncaught error.
    if (bun !== undefined)
      throw new Error(
        `ServiceSimulator does not run on Bun ${bun}, whose https servers do not show the client certificate. Start the simulator with Node, for example with the command npx nestjs-service simulator, or use stubService().`,
      );
    const { ports, requireClientCertificate } = service.options;
    const basePath = basePathOf(service);
    const started = await Promise.allSettled(
      ADDRESSES.map((address) => {
        const isStrict = address === 'baseUrl' && requireClientCertificate;
        const plan: ServerPlan = { ...PLANS[address], ...(isStrict && { clientCertificate: 'required' }) };
        const respond = (request: RecordedRequest) => answerRequest(request, basePath, service);
        return TlsServer.listen(plan, ports?.[address] ?? 0, identity, service, respond);
      }),
    );
    const servers = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const failed = started.find((result) => result.status === 'rejected');
    if (failed) {
      await Promise.all(servers.map((server) => server.close()));
      throw failed.reason;
    }
    const byAddress = Object.fromEntries(ADDRESSES.map((address, index) => [address, servers[index]]));
    return new ServerGroup(byAddress as Record<SimulatorAddress, TlsServer>, basePath);
  }

  /** Returns the servers of a face; all servers without one. */
  serversOf(face?: SimulatorFace): TlsServer[] {
    return Object.values(this.#byAddress).filter((server) => (face ?? server.face) === server.face);
  }

  get urls(): Record<SimulatorAddress, string> {
    const entries = ADDRESSES.map((address) => [address, this.#byAddress[address].origin + this.#basePath]);
    return Object.fromEntries(entries) as Record<SimulatorAddress, string>;
  }

  get handshakes(): Record<SimulatorFace, HandshakeCount> {
    const faces = [...new Set(this.serversOf().map(({ face }) => face))];
    const entries = faces.map((face) => [face, this.#handshakesOf(face)]);
    return Object.fromEntries(entries) as Record<SimulatorFace, HandshakeCount>;
  }

  get openConnections(): number {
    return this.serversOf().reduce((total, server) => total + server.openConnections, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.serversOf().map((server) => server.close()));
  }

  #handshakesOf(face: SimulatorFace): HandshakeCount {
    const counts = this.serversOf(face).map(({ handshakes }) => handshakes);
    const sum = (key: keyof HandshakeCount) => counts.reduce((total, each) => total + each[key], 0);
    return { total: sum('total'), resumed: sum('resumed'), refused: sum('refused') };
  }
}

/** Normalizes `api/` to `/api`. Empty without a base path. */
function basePathOf({ options: { basePath = '' } }: SimulatedService): string {
  const trimmed = basePath.replace(/^\/+|\/+$/g, '');
  return trimmed === '' ? '' : `/${trimmed}`;
}

/** Makes the response of a server when no fault is injected. */
function answerRequest(
  request: RecordedRequest,
  basePath: string,
  service: SimulatedService,
): SimulatedAnswer | Promise<SimulatedAnswer> {
  if (!request.path.startsWith(`${basePath}/`)) {
    return failure(404, 'NOT_FOUND', `There is nothing at ${request.method} ${request.path}`);
  }
  const path = request.path.slice(basePath.length);
  if (request.face === 'token') return answerTokenRequest(request, path, service);
  return checkAccess(request, service) ?? answerApiCall(request, path, service);
}
