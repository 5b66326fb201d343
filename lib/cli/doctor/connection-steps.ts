import { type Clock } from '../../time/clock.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type ClientIdentity } from '../../tls/client-identity.js';
import { skipped } from './check.js';
import { shakeHands, type HandshakeFacts, type HandshakeTarget } from './handshake.js';
import { judgeClientCertificate, judgeEnd } from './judge-handshake.js';
import { judgeServer } from './judge-server.js';
import { checkConnection, type Place } from './reachable.js';
import { type Step } from './run-steps.js';

export interface ServerStepParts {
  options: ResolvedOptions;
  identity: ClientIdentity;
  clock: Clock;
}

/** Whether something takes connections there. */
export function connectionStep(server: string, place: Place): Step {
  const run = (timeoutMs: number) => checkConnection(place, timeoutMs);
  return { name: `${server}.connection`, needs: place.proxy ? ['proxy.connection'] : [], run };
}

/** Connection, TLS and client certificate of one server. Plain http is for a sidecar, which does TLS. */
export function serverSteps(place: Place, parts: ServerStepParts): Step[] {
  const server = place.server === 'api' ? 'api' : 'token-endpoint';
  const isSecure = place.url.protocol === 'https:';
  return [connectionStep(server, place), ...(isSecure ? handshakeSteps(server, place, parts) : [])];
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
      facts = await shake(isApi ? apiContext : tokenContext(), timeoutMs);
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
