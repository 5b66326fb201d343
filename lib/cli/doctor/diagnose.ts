import { type Clock } from '../../config/clock.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type ServiceTokenError } from '../../errors/index.js';
import { exchange } from '../../exchange/exchange.js';
import { withUserAgent } from '../../exchange/user-agent.js';
import { type Agents } from '../../tls/agents.js';
import { type ClientIdentity } from '../../tls/client-identity.js';
import { checkBanks } from './banks-check.js';
import { skipped, type LocatedCheck } from './check.js';
import { type Material, readMaterial } from './material.js';
import { type Place } from './reachable.js';
import { proxySteps, serverSteps } from './connection-steps.js';
import { runSteps, type Step, type StepLimits } from './run-steps.js';
import { SeenAnswers } from './seen-answers.js';
import { TokenChecks } from './token-checks.js';

/** An id that no customer has. Asking for a token creates no customer (specification 4: POST /customers/v1 does). */
const MADE_UP_CUSTOMER = 'nestjs-service-doctor';

export interface DiagnosisParts extends StepLimits {
  options: ResolvedOptions;
  identity: ClientIdentity;
  agents: Agents;
  clock: Clock;
  /** Variables of the process: a proxy that the module ignores is told of. */
  env: Readonly<Record<string, string | undefined>>;
  /** Where it was read already. */
  material?: Material;
  /** Also asks for a token of a customer: of this one, or of one that is made up. */
  customer?: { id?: string };
  /** A refusal of the credentials that is known already. */
  refusal?: ServiceTokenError;
}

/**
 * Looks for what keeps the module from working: connections, certificates, tokens, the call of the banks, the clock. The
 * true cause comes first; what only follows from it is skipped. No step is repeated, and none sends anything that
 * changes something at the service.
 */
export async function* diagnose(parts: DiagnosisParts): AsyncGenerator<LocatedCheck> {
  const { options, identity, clock } = parts;
  const answers = new SeenAnswers(withUserAgent(exchange, options.http.userAgent), () => clock.now());
  const material = parts.material ?? (await readMaterial(options, clock));
  const shared = { ...parts, answers, material };
  const { addresses, oauth, http } = options;
  const { tokenUrl } = addresses;
  const tokens = oauth && tokenUrl !== undefined ? new TokenChecks(shared, oauth, tokenUrl) : undefined;
  const api = placeOf(parts, addresses.baseUrl, addresses.baseOption);
  const token = tokenUrl === undefined ? undefined : placeOf(parts, tokenUrl, addresses.tokenOption ?? '');
  const steps: Step[] = [
    ...(http.proxy ? proxySteps(placeOf(parts, http.proxy.reveal(), 'http.proxy')) : []),
    ...serverSteps('api', api, shared),
    ...(token && tokens ? serverSteps('token-endpoint', token, shared) : []),
  ];
  yield* runSteps([...steps, ...callSteps(parts, tokens, answers)], parts);
  yield { name: 'clock', ...answers.judgeClock(identity.certificate) };
}

function callSteps(parts: DiagnosisParts, tokens: TokenChecks | undefined, answers: SeenAnswers): Step[] {
  const { options, customer } = parts;
  const connected = (server: string) => [
    `${server}.name`,
    `${server}.connection`,
    `${server}.tls`,
    `${server}.client-certificate`,
  ];
  const steps: Step[] = [];
  if (tokens) {
    steps.push({
      name: 'token.api',
      needs: ['proxy.connection', ...connected('token-endpoint')],
      run: (ms, signal) => tokens.api(ms, signal),
    });
  }
  if (tokens && customer) {
    const { id = MADE_UP_CUSTOMER } = customer;
    steps.push({
      name: 'token.customer',
      needs: ['token.api'],
      run: (ms, signal) => tokens.customer(id, customer.id !== undefined, ms, signal),
    });
  }
  const withBearer = options.authentication === 'oauth';
  steps.push({
    name: 'api.banks',
    needs: [...connected('api'), ...(withBearer ? ['token.api'] : [])],
    run: async (ms, signal) => {
      const token = withBearer ? tokens?.apiToken : undefined;
      // The endpoint was asked too often. Without a bearer, the API would refuse what is right.
      if (withBearer && !token) return skipped('There is no token to call with for the moment.');
      return checkBanks({ ...parts, answers }, token, ms, signal);
    },
  });
  return steps;
}

const PROXIES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'];

function placeOf(
  { options, env }: Pick<DiagnosisParts, 'options' | 'env'>,
  address: string,
  option: string,
): Place & { isTls: boolean } {
  const { describeOption, http } = options;
  const url = new URL(address);
  const isTls = url.protocol === 'https:';
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || (isTls ? 443 : 80)),
    option,
    described: describeOption(option),
    proxyDescribed: describeOption('http.proxy'),
    ignoredProxy: http.proxy ? undefined : PROXIES.find((name) => env[name]),
    isTls,
  };
}
