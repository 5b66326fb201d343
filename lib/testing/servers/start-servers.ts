import { type ServiceEnvironment } from '../../config/options.js';
import { type SimulatorFace, type RecordedRequest } from '../request-log.js';
import { type SimulatorAddress, type SimulatorOptions } from '../simulator.options.js';
import { type Answer, failure } from './answer.js';
import { ServerGroup } from './server-group.js';
import { type ServerContext, type ServerIdentity, TlsServer, type TlsServerSettings } from './tls-server.js';

interface Plan {
  face: SimulatorFace;
  environment: ServiceEnvironment;
  clientCertificate: TlsServerSettings['clientCertificate'];
}

const PLANS: Readonly<Record<SimulatorAddress, Plan>> = {
  baseUrl: { face: 'base', environment: 'production', clientCertificate: 'requested' },
  oauthBaseUrl: { face: 'oauth-base', environment: 'production', clientCertificate: 'requested' },
  sandboxUrl: { face: 'sandbox', environment: 'sandbox', clientCertificate: 'none' },
  sandboxMtlsUrl: { face: 'sandbox-mtls', environment: 'sandbox', clientCertificate: 'required' },
  authUrl: { face: 'token', environment: 'production', clientCertificate: 'requested' },
  sandboxAuthUrl: { face: 'token', environment: 'sandbox', clientCertificate: 'requested' },
};

/** Answers a request. The path is without the base path of the addresses. */
type Responder = (request: RecordedRequest, path: string) => Answer | Promise<Answer>;

export interface ServersSettings {
  options: SimulatorOptions;
  identity: ServerIdentity;
  clientAuthorities: string;
  context: ServerContext;
  api: Responder;
  token: Responder;
}

/** Starts the six servers. If one cannot listen, closes the others and rejects. */
export async function startServers(settings: ServersSettings): Promise<ServerGroup> {
  const addresses = Object.keys(PLANS) as SimulatorAddress[];
  const started = await Promise.allSettled(addresses.map((address) => startServer(address, settings)));
  const servers = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failed = started.find((result) => result.status === 'rejected');
  if (failed) {
    await Promise.all(servers.map((server) => server.close()));
    throw failed.reason;
  }
  const byAddress = Object.fromEntries(addresses.map((address, index) => [address, servers[index]]));
  return new ServerGroup(byAddress as Record<SimulatorAddress, TlsServer>);
}

function startServer(address: SimulatorAddress, settings: ServersSettings): Promise<TlsServer> {
  const { options, identity, clientAuthorities, context } = settings;
  const plan = PLANS[address];
  const demanded = address === 'baseUrl' && options.requireClientCertificate;
  const respond = plan.face === 'token' ? settings.token : settings.api;
  const basePath = basePathOf(options);
  return TlsServer.listen(
    {
      ...plan,
      ...(demanded ? { clientCertificate: 'required' } : {}),
      port: options.ports?.[address] ?? 0,
      identity,
      clientAuthorities,
      refusal: options.clientCertificateRefusal ?? 'tls-alert',
      maxTlsVersion: options.maxTlsVersion ?? 'TLSv1.3',
      keepAliveTimeoutMs: options.keepAliveTimeoutMs ?? 5_000,
      delayMs: (typeof options.delayMs === 'object' ? options.delayMs[plan.face] : options.delayMs) ?? 0,
      answer: (request) =>
        request.path.startsWith(`${basePath}/`)
          ? respond(request, request.path.slice(basePath.length))
          : failure(404, 'NOT_FOUND', `There is nothing at ${request.method} ${request.path}`),
    },
    context,
  );
}

/** `/api` for `api/`; empty without one. */
export function basePathOf({ basePath = '' }: SimulatorOptions): string {
  const trimmed = basePath.replace(/^\/+|\/+$/g, '');
  return trimmed === '' ? '' : `/${trimmed}`;
}
