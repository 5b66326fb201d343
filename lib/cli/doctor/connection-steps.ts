import { type Clock } from '../../config/clock.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type Secret } from '../../config/secret.js';
import { ProxyTunnel } from '../../tls/connections/proxy-tunnel.js';
import { classify } from '../../exchange/classify.js';
import { failed, ok, skipped, type Finding } from './check.js';
import { shakeHands, type HandshakeFacts, type HandshakeTarget } from './handshake.js';
import { judgeClientCertificate, judgeEnd, type ClientJudgement } from './judge-handshake.js';
import { judgeServer } from './judge-server.js';
import { type Material } from './material.js';
import { checkConnection, checkName, type Place } from './reachable.js';
import { type Step } from './run-steps.js';

export interface ServerStepParts {
  options: ResolvedOptions;
  material: Material | undefined;
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
export function serverSteps(
  server: 'api' | 'token-endpoint',
  place: Place & { isTls: boolean },
  parts: ServerStepParts,
): Step[] {
  const { proxy } = parts.options.http;
  const [named, connected, secured] = ['name', 'connection', 'tls'].map((step) => `${server}.${step}`);
  // The module's agents for plain http, which is allowed on loopback only, use no proxy.
  const throughProxy = proxy !== undefined && place.isTls;
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
  if (!place.isTls) return steps;
  const handshake = new ServerHandshake(server, place, parts);
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
  readonly #isApi: boolean;
  #facts?: HandshakeFacts;

  constructor(server: 'api' | 'token-endpoint', place: Place, parts: ServerStepParts) {
    this.#place = place;
    this.#parts = parts;
    this.#isApi = server === 'api';
  }

  async judgeServer(timeoutMs: number): Promise<Finding> {
    const { options, material, clock } = this.#parts;
    if (!material) {
      return failed(
        'The certificate or key cannot be used any more: their files have changed since they were checked.',
        `Check ${options.describeOption('tls.certificate')} and ${options.describeOption('tls.privateKey')}.`,
        'tls.certificate',
      );
    }
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
      chainDescribed: options.describeOption('tls.chain'),
      now: clock.now(),
      isPublic: async () => (await shakeHands(target(undefined), timeoutMs)).notVerified === undefined,
    });
  }

  judgeClientCertificate(): Promise<Finding> {
    return Promise.resolve(judgeClientCertificate(this.#judgement()));
  }

  #judgement(): ClientJudgement {
    const { options, material, clock } = this.#parts;
    const { describeOption } = options;
    const identity = `${describeOption('tls.certificate')} and ${describeOption('tls.privateKey')}`;
    const isOffered = this.#isApi || options.oauth?.mtls === true;
    return {
      place: this.#place,
      facts: this.#facts as HandshakeFacts,
      certificate: isOffered ? material?.certificate : undefined,
      certificateDescribed: describeOption('tls.certificate'),
      offerDescribed: this.#isApi
        ? `Set ${identity}`
        : `Set ${describeOption('oauth.mtls')} to true (with ${identity})`,
      now: clock.now(),
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
    const timer = setTimeout(() => end(explainTunnel(place, 'ERR_PROXY_TIMEOUT')), timeoutMs);
    tunnel.on('error', (error) => end(explainTunnel(place, classify(error).reason ?? 'unknown reason')));
    // What is written waits until the tunnel is open.
    tunnel.write(Buffer.alloc(0), (error) => {
      if (!error) end(ok(`The proxy opens a tunnel to ${place.host}, port ${place.port}.`));
    });
  });
}

function explainTunnel(place: Place, reason: string): Finding {
  const { host, described, option, proxyDescribed } = place;
  const status = /_TUNNEL_(\d{3})$/.exec(reason)?.[1];
  if (status === '407') {
    return failed(
      `The proxy refuses the user and password, or wants them (${reason}).`,
      `Check ${proxyDescribed}: http://user:password@host:port, with reserved characters percent-encoded.`,
      'http.proxy',
    );
  }
  if (status?.startsWith('4')) {
    return failed(
      `The proxy does not allow connections to ${host} (${reason}).`,
      `Ask who runs the proxy to allow ${host}. Check ${proxyDescribed} and ${described}.`,
      'http.proxy',
    );
  }
  if (status) {
    return failed(
      `The proxy cannot reach ${host} (${reason}).`,
      `Check ${described}. If it is right, ask who runs the proxy.`,
      option,
    );
  }
  return failed(
    `The proxy opened no tunnel to ${host} (${reason}).`,
    `Check ${proxyDescribed}: its port, and whether it is an http: or an https: proxy.`,
    'http.proxy',
  );
}
