import { type Clock } from '../../time/clock.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type ClientIdentity } from '../../tls/client-identity.js';
import { skipped } from './check.js';
import { shakeHands, type HandshakeFacts, type HandshakeTarget } from './handshake.js';
import { judgeClientCertificate, judgeEnd } from './judge-handshake.js';
import { judgeServer } from './judge-server.js';
import { checkConnection, checkName, type Place } from './reachable.js';
import { type Step } from './run-steps.js';

export interface ServerStepParts {
  options: ResolvedOptions;
  identity: ClientIdentity;
  clock: Clock;
}

/** Whether there is a host of this name, and something takes connections there. */
export function connectionSteps(server: string, place: Place): Step[] {
  const name = `${server}.name`;
  return [
    { name, needs: [], run: (ms) => checkName(place, ms) },
    { name: `${server}.connection`, needs: [name], run: (ms) => checkConnection(place, ms) },
  ];
}

/** Name, connection, TLS and client certificate of one server. Behind a proxy, that looks the name up. */
export function serverSteps(place: Place, parts: ServerStepParts): Step[] {
  const server = place.server === 'api' ? 'api' : 'token-endpoint';
  if (place.url.protocol !== 'https:') {
    const { authentication, oauth } = parts.options;
    const isMutual = server === 'api' ? authentication === 'mtls' : oauth?.mtls;
    return [...connectionSteps(server, place), ...(isMutual ? [sidecarStep(server, place)] : [])];
  }
  const tunnel: Step = {
    name: `${server}.connection`,
    needs: ['proxy.connection'],
    run: (ms) => checkConnection(place, ms),
  };
  return [
    ...(place.proxy ? [tunnel] : connectionSteps(server, place)),
    ...handshakeSteps(server, place, parts),
  ];
}

/** Plain http on loopback, where mutual TLS is asked for. */
function sidecarStep(server: string, { host, port }: Place): Step {
  const name = `${server}.client-certificate`;
  const seen = server === 'api' ? 'api.banks shows' : 'the checks of tokens show';
  const message = `The sidecar at ${host}, port ${port}, does TLS. Whether it shows the client certificate, and verifies the service, cannot be seen from here; ${seen} whether the service answers through it.`;
  return { name, needs: [`${server}.connection`], run: () => Promise.resolve(skipped(message)) };
}

/** One handshake, for two checks. */
function handshakeSteps(
  server: string,
  place: Place,
  { options, identity, clock }: ServerStepParts,
): [Step, Step] {
  const { apiContext, tokenContext, certificate, chain } = identity.loaded;
  const isApi = place.server === 'api';
  const offered = isApi || options.oauth?.mtls === true ? certificate : undefined;
  const shake = (context: HandshakeTarget['context'], timeoutMs: number): Promise<HandshakeFacts> =>
    shakeHands({ ...place, context }, timeoutMs);
  let facts: HandshakeFacts;
  const secured: Step = {
    name: `${server}.tls`,
    needs: [`${server}.connection`],
    run: async (timeoutMs) => {
      facts = await shake(isApi ? apiContext : tokenContext, timeoutMs);
      const ended = judgeEnd({ place, facts });
      if (ended) return ended;
      if (!facts.established) {
        return skipped('The server ended the handshake before its own certificate could be judged.');
      }
      const isPublic = async () => (await shake(undefined, timeoutMs)).notVerified === undefined;
      return judgeServer({ place, facts, chain, now: clock.now(), isPublic });
    },
  };
  const certified: Step = {
    name: `${server}.client-certificate`,
    needs: [secured.name],
    run: () => Promise.resolve(judgeClientCertificate({ place, facts, certificate: offered })),
  };
  return [secured, certified];
}
