import { type Clock } from '../../config/clock.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type Secret } from '../../config/secret.js';
import { classify } from '../../exchange/classify.js';
import { ProxyTunnel } from '../../tls/connections/proxy-tunnel.js';
import { ok, skipped, type Finding } from './check.js';
import { shakeHands, type HandshakeFacts, type HandshakeTarget } from './handshake.js';
import { judgeClientCertificate, judgeEnd } from './judge-handshake.js';
import { judgeServer } from './judge-server.js';
import { type Material } from './material.js';
import { checkConnection, checkName, explained, type Place } from './reachable.js';
import { type Step } from './run-steps.js';

export interface ServerStepParts {
  options: ResolvedOptions;
  material: Material;
  clock: Clock;
}

/** Whether the proxy of `http.proxy` is there. */
export function proxySteps(place: Place): Step[] {
  return [
    { name: 'proxy.name', needs: [], run: (ms) => checkName(place, ms) },
    { name: 'proxy.connection', needs: ['proxy.name'], run: (ms) => checkConnection(place, ms) },
  ];
}

/** Name, connection, TLS and client certificate of one server. Behind a proxy, that looks the name up. */
export function serverSteps(place: Place, parts: ServerStepParts): Step[] {
  const { proxy } = parts.options.http;
  const server = place.server === 'api' ? 'api' : 'token-endpoint';
  const isTls = place.url.protocol === 'https:';
  const [named, connected, secured] = ['name', 'connection', 'tls'].map((step) => `${server}.${step}`);
  const throughProxy = (by: Secret): Step[] => [
    { name: connected, needs: ['proxy.name', 'proxy.connection'], run: (ms) => checkTunnel(place, by, ms) },
  ];
  const direct: Step[] = [
    { name: named, needs: [], run: (ms) => checkName(place, ms) },
    { name: connected, needs: [named], run: (ms) => checkConnection(place, ms) },
  ];
  // The module's agents for plain http, which is allowed on loopback only, use no proxy.
  if (!isTls) return direct;
  return [
    ...(proxy ? throughProxy(proxy) : direct),
    ...handshakeSteps(place, parts, { connected, secured, certified: `${server}.client-certificate` }),
  ];
}

/** One handshake, for two checks. */
function handshakeSteps(
  place: Place,
  { options, material, clock }: ServerStepParts,
  names: { connected: string; secured: string; certified: string },
): Step[] {
  const isApi = place.server === 'api';
  const context = isApi ? material.apiContext : material.tokenContext;
  const certificate = isApi || options.oauth?.mtls === true ? material.certificate : undefined;
  const shake = (trust: HandshakeTarget['context'], timeoutMs: number): Promise<HandshakeFacts> =>
    shakeHands({ ...place, context: trust, proxy: options.http.proxy }, timeoutMs);
  let facts: HandshakeFacts;
  const secure = async (timeoutMs: number): Promise<Finding> => {
    facts = await shake(context, timeoutMs);
    const ended = judgeEnd({ place, facts });
    if (ended) return ended;
    if (!facts.established) {
      return skipped('The server ended the handshake before its own certificate could be judged.');
    }
    const isPublic = async () => (await shake(undefined, timeoutMs)).notVerified === undefined;
    return judgeServer({ place, facts, chain: material.chain, now: clock.now(), isPublic });
  };
  return [
    { name: names.secured, needs: [names.connected], run: secure },
    {
      name: names.certified,
      needs: [names.secured],
      run: () => Promise.resolve(judgeClientCertificate({ place, facts, certificate })),
    },
  ];
}

/** Whether the proxy opens a tunnel to the server. */
function checkTunnel(place: Place, proxy: Secret, timeoutMs: number): Promise<Finding> {
  return new Promise((resolve) => {
    const tunnel = new ProxyTunnel(proxy, place.host, place.port);
    const end = (finding: Finding): void => {
      clearTimeout(timer);
      tunnel.destroy();
      resolve(finding);
    };
    const timedOut = { kind: 'proxy', reason: 'ERR_PROXY_TIMEOUT' } as const;
    const timer = setTimeout(() => end(explained(place, timedOut)), timeoutMs);
    tunnel.on('error', (error) => end(explained(place, classify(error))));
    // What is written waits until the tunnel is open.
    tunnel.write(Buffer.alloc(0), (error) => {
      if (!error) end(ok(`The proxy opens a tunnel to ${place.host}, port ${place.port}.`));
    });
  });
}
