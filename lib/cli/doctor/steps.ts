import { type AccessToken } from '../../auth/access-token.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type StartableClient } from '../../engine/create-client.js';
import { type ServiceApiError, ServiceError, messageSentence } from '../../errors/index.js';
import { type ClientIdentity } from '../../tls/client-identity.js';
import { failed, ok, skipped, warning, type Finding } from './check.js';
import { shakeHands, type HandshakeFacts } from './handshake.js';
import { judgeClientCertificate, judgeServer } from './judge.js';
import { type Place } from './place.js';
import { type Step } from './run-steps.js';

/** All that connects: first to each server, then for tokens, then the call of the banks. Nothing changes at the service. */
export function steps(
  options: ResolvedOptions,
  identity: ClientIdentity,
  service: StartableClient,
  customer: string | undefined,
): Step[] {
  const { baseUrl, baseOption, tokenUrl, tokenOption = '' } = options.addresses;
  const api = placeOf(options, identity, 'api', baseUrl, baseOption);
  const token = options.oauth && tokenUrl && placeOf(options, identity, 'token', tokenUrl, tokenOption);
  return [
    ...serverSteps(api, identity, true),
    ...(token ? serverSteps(token, identity, options.oauth?.mtls === true) : []),
    ...callSteps(options, service, customer),
  ];
}

function placeOf(
  { describeOption, http }: ResolvedOptions,
  { hasChain }: ClientIdentity,
  server: Place['server'],
  address: string,
  option: string,
): Place {
  const url = new URL(address);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  return { server, url, option, describeOption, http, host, port, hasChain, proxy: http.proxyFor?.(address) };
}

/** One handshake, for two checks. Plain http is for a sidecar, which does TLS. */
function serverSteps(place: Place, { loaded }: ClientIdentity, isOffered: boolean): Step[] {
  if (place.url.protocol === 'http:') return [];
  const name = place.server === 'api' ? 'api' : 'token-endpoint';
  let facts: HandshakeFacts;
  return [
    {
      name: `${name}.connection`,
      needs: [],
      run: async (timeoutMs) => {
        const context = place.server === 'api' ? loaded.apiContext : loaded.tokenContext();
        facts = await shakeHands(place, context, timeoutMs);
        return judgeServer(place, facts, loaded.chain, Date.now());
      },
    },
    {
      name: `${name}.client-certificate`,
      needs: [`${name}.connection`],
      run: () =>
        Promise.resolve(
          judgeClientCertificate(place, facts, isOffered ? loaded.certificate : undefined, loaded.keyType),
        ),
    },
  ];
}

/** By a client as the application has it. What they say is what its errors say. */
function callSteps(options: ResolvedOptions, service: StartableClient, customer: string | undefined): Step[] {
  const connected = (server: string) => [`${server}.connection`, `${server}.client-certificate`];
  const found: Step[] = [];
  let hasToken = options.authentication !== 'oauth';
  if (options.oauth) {
    found.push({
      name: 'token.api',
      needs: connected('token-endpoint'),
      run: async (timeout, signal) => {
        const token = await service.auth.getApiToken({ timeout, signal, once: true });
        hasToken = true;
        return ok(`The token endpoint gives a token for calls of the API, ${lifetime(token)}.`);
      },
    });
  }
  if (options.oauth && customer !== undefined) {
    found.push({
      name: 'token.customer',
      needs: ['token.api'],
      run: async (timeout, signal) => {
        const token = await service.auth.getCustomerToken(customer, { timeout, signal, once: true });
        return ok(`The token endpoint gives a token for this customer, ${lifetime(token)}.`);
      },
    });
  }
  found.push({
    name: 'api.banks',
    needs: [...connected('api'), ...(hasToken ? [] : ['token.api'])],
    run: async (timeout, signal) => {
      // The endpoint was asked too often. Without a bearer, the API would refuse what is right.
      if (!hasToken) return skipped('There is no token to call with for the moment.');
      await service.banks.list({ timeout, signal });
      return ok('GET /banks/v1 is answered with JSON.');
    },
  });
  return found.map((step) => ({
    ...step,
    run: (timeoutMs, signal) =>
      step.run(timeoutMs, signal).catch((error: unknown) => fromError(error, options)),
  }));
}

/** What an error of the client says, and what to do. */
function fromError(error: unknown, { describeOption, addresses }: ResolvedOptions): Finding {
  if (!(error instanceof ServiceError)) throw error;
  const {
    hint = `Check ${describeOption(addresses.baseOption)}, and that ${describeOption('environment')} and ${describeOption('authentication')} are those of this application. If it was a short failure, run the check again.`,
  } = error;
  const { status, correlationId } = error as Partial<ServiceApiError>;
  const message = `${messageSentence(error)}${correlationId ? ` Correlation id: ${correlationId}.` : ''}`;
  if (status !== 429) return failed(message, hint);
  return warning(`${message} It can be reached, and did not refuse the credentials.`, hint);
}

function lifetime({ expiresAt }: AccessToken): string {
  const seconds = Math.round((expiresAt.getTime() - Date.now()) / 1000);
  return seconds > 1 ? `valid for ${seconds} s` : 'without a lifetime: it is used for one second';
}
