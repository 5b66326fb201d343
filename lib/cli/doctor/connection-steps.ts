import { type Clock } from '../../config/clock.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type Secret } from '../../config/secret.js';
import { ProxyTunnel } from '../../tls/connections/proxy-tunnel.js';
import { classify } from '../../exchange/classify.js';
import { ok, skipped, type Finding } from './check.js';
import { shakeHands, type HandshakeFacts, type HandshakeTarget } from './handshake.js';
import { judgeClientCertificate, judgeEnd, type ClientJudgement } from './judge-handshake.js';
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
    { name: 'proxy.name', needs: [], run: (timeoutMs) => checkName(place, timeoutMs) },
    {
      name: 'proxy.connection',
      needs: ['proxy.name'],
      run: (timeoutMs) => checkConnection(place, timeoutMs),
    },
  ];
}

/** Name, connection, TLS and client certificate of one server. Behind a proxy, that looks the name up. */
export function serverSteps(place: Place, parts: ServerStepParts): Step[] {
  const { proxy } = parts.options.http;
  const server = place.server === 'api' ? 'api' : 'token-endpoint';
  const isTls = place.url.protocol === 'https:';
  const [named, connected, secured] = ['name', 'connection', 'tls'].map((step) => `${server}.${step}`);
  // The module's agents for plain http, which is allowed on loopback only, use no proxy.
  const throughProxy = proxy !== undefined && isTls;
  const steps: Step[] = throughProxy
    ? [
        {
          name: connected,
          needs: ['proxy.name', 'proxy.connection'],
          run: (ms) => checkTunnel(place, proxy, ms),
        },
      ]
    : [
        { name: named, needs: [], run: (ms) => checkName(place, ms) },
        { name: connected, needs: [named], run: (ms) => checkConnection(place, ms) },
      ];
  if (!isTls) return steps;
  const handshake = new ServerHandshake(place, parts);
  return [
    ...steps,
    { name: secured, needs: [connected], run: (ms) => handshake.judgeServer(ms) },
    { name: `${server}.client-certificate`, needs: [secured], run: () => handshake.judgeClientCertificate() },
  ];
}

/** One handshake, for two checks. */
class ServerHandshake {
  readonly #place: Place;
  readonly #parts: ServerStepParts;
  #facts?: HandshakeFacts;

  constructor(place: Place, parts: ServerStepParts) {
    this.#place = place;
    this.#parts = parts;
  }

  get #isApi(): boolean {
    return this.#place.server === 'api';
  }

  async judgeServer(timeoutMs: number): Promise<Finding> {
    const { options, material, clock } = this.#parts;
    const context = this.#isApi ? material.apiContext : material.tokenContext;
    const target = (trust: HandshakeTarget['context']) => ({
      ...this.#place,
      context: trust,
      proxy: options.http.proxy,
    });
    this.#facts = await shakeHands(target(context), timeoutMs);
    const ended = judgeEnd(this.#judgement());
    if (ended) return ended;
    if (!this.#facts.established) {
      return skipped('The server ended the handshake before its own certificate could be judged.');
    }
    return judgeServer({
      place: this.#place,
      facts: this.#facts,
      chain: material.chain,
      now: clock.now(),
      isPublic: async () => (await shakeHands(target(undefined), timeoutMs)).notVerified === undefined,
    });
  }

  judgeClientCertificate(): Promise<Finding> {
    return Promise.resolve(judgeClientCertificate(this.#judgement()));
  }

  #judgement(): ClientJudgement {
    const { options, material } = this.#parts;
    const isOffered = this.#isApi || options.oauth?.mtls === true;
    return {
      place: this.#place,
      facts: this.#facts as HandshakeFacts,
      certificate: isOffered ? material.certificate : undefined,
    };
  }
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
    const timer = setTimeout(
      () => end(explained(place, { kind: 'proxy', reason: 'ERR_PROXY_TIMEOUT' })),
      timeoutMs,
    );
    tunnel.on('error', (error) => end(explained(place, classify(error))));
    // What is written waits until the tunnel is open.
    tunnel.write(Buffer.alloc(0), (error) => {
      if (!error) end(ok(`The proxy opens a tunnel to ${place.host}, port ${place.port}.`));
    });
  });
}
