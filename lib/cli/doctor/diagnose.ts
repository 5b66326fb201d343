import { createService } from '../../engine/create-service.js';
import { exchange } from '../../exchange/exchange.js';
import { SILENT } from '../../exchange/io.js';
import { callSteps } from './call-steps.js';
import { type Check } from './check.js';
import { connectionStep, serverSteps, type ServerStepParts } from './connection-steps.js';
import { type Place } from './reachable.js';
import { runSteps, type StepLimits } from './run-steps.js';
import { SeenAnswers } from './seen-answers.js';

export interface DiagnosisParts extends StepLimits, ServerStepParts {
  /** Of which a token is asked for; else of one that is made up. */
  customer?: string;
}

/**
 * Looks for what keeps the module from working: connections, certificates, tokens, the call of the banks, the clock. The
 * true cause comes first; what only follows from it is skipped. No step is repeated, and none sends anything that
 * changes something at the service.
 */
export async function* diagnose(parts: DiagnosisParts): AsyncGenerator<Check> {
  const { options, identity, clock, customer } = parts;
  const { addresses, oauth, http } = options;
  const { baseUrl, baseOption, tokenUrl, tokenOption = '' } = addresses;
  const answers = new SeenAnswers(exchange, () => clock.now());
  const once = { ...options, tokenStore: undefined, http: { ...http, retries: 0, shutdownTimeout: 0 } };
  const io = { exchange: answers.exchange, clock, random: Math.random, log: SILENT };
  const service = createService(once, identity, io);
  const places = [placeOf(parts, 'api', baseUrl, baseOption)];
  if (oauth && tokenUrl !== undefined) places.push(placeOf(parts, 'token', tokenUrl, tokenOption));
  const proxy = places.find((place) => place.proxy)?.proxy;
  const proxyPlace = proxy && placeOf(parts, 'api', proxy.reveal(), 'http.proxy');
  const steps = [
    ...(proxyPlace ? [connectionStep('proxy', { ...proxyPlace, proxy: undefined, http: undefined })] : []),
    ...places.flatMap((place) => serverSteps(place, parts)),
    ...callSteps(options, service, answers, customer),
  ];
  try {
    yield* runSteps(steps, parts);
    yield { name: 'clock', ...answers.judgeClock(identity.certificate) };
  } finally {
    await service.close();
  }
}

function placeOf(
  { options, identity }: DiagnosisParts,
  server: Place['server'],
  address: string,
  option: string,
): Place {
  const url = new URL(address);
  return {
    server,
    url,
    option,
    describeOption: options.describeOption,
    http: options.http,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
    hasChain: identity.hasChain,
    proxy: options.http.proxyFor?.(address),
  };
}
