import { type AccessToken } from '../../auth/access-token.js';
import { type ResolvedOptions } from '../../config/resolve-options.js';
import { type StartableClient } from '../../engine/create-client.js';
import { type ServiceApiError, ServiceError, messageSentence } from '../../errors/index.js';
import { type ClientIdentity } from '../../tls/client-identity.js';
import { failed, ok, skipped, warning, type Finding } from './check.js';
import { shakeHands, type HandshakeFacts } from './handshake.js';
import { judgeClientCertificate, judgeServer } from './judge.js';
import { type ServerPlace } from './server-place.js';
import { type Step } from './run-steps.js';

/** The checks that connect: the handshake with each server, the tokens, then a list of banks. None changes anything. */
export function makeSteps(
  options: ResolvedOptions,
  identity: ClientIdentity,
  service: StartableClient,
  customer: string | undefined,
): Step[] {
  const { baseUrl, baseOption, tokenUrl, tokenOption = '' } = options.addresses;
  const api = makePlace(options, identity, 'api', baseUrl, baseOption);
  const token = options.oauth && tokenUrl && makePlace(options, identity, 'token', tokenUrl, tokenOption);
  return [
    ...serverSteps(api, identity, true),
    ...(token ? serverSteps(token, identity, options.oauth?.mtls === true) : []),
    ...callSteps(options, service, customer),
  ];
}

function makePlace(
  { describeOption, http, oauth }: ResolvedOptions,
  { hasChain, certificate }: ClientIdentity,
  server: ServerPlace['server'],
  address: string,
  option: string,
): ServerPlace {
  const url = new URL(address);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const hasCertificate = certificate !== undefined && (server === 'api' || oauth?.mtls === true);
  const proxy = http.proxyFor?.(address);
  return { server, url, option, describeOption, http, host, port, hasChain, hasCertificate, proxy };
}

/** One handshake serves two checks. An http:// address is that of a sidecar, which does TLS itself: nothing to check. */
function serverSteps(place: ServerPlace, { loaded }: ClientIdentity, isOffered: boolean): Step[] {
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

/** These checks use a client like the application's, so they report the same errors. */
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
        return ok(`The token endpoint issued an API token, ${describeLifetime(token)}.`);
      },
    });
  }
  if (options.oauth && customer !== undefined) {
    found.push({
      name: 'token.customer',
      needs: ['token.api'],
      run: async (timeout, signal) => {
        const token = await service.auth.getCustomerToken(customer, { timeout, signal, once: true });
        return ok(`The token endpoint issued a token for this customer, ${describeLifetime(token)}.`);
      },
    });
  }
  found.push({
    name: 'api.banks',
    needs: [...connected('api'), ...(hasToken ? [] : ['token.api'])],
    run: async (timeout, signal) => {
      // The token endpoint responded with 429, which is only a warning. Without a token the API would respond with 401, and
      // that would look like a wrong configuration.
      if (!hasToken) return skipped('Not checked, because the token endpoint issues no token at the moment.');
      await service.banks.list({ timeout, signal });
      return ok('GET /banks/v1 answered with JSON.');
    },
  });
  return found.map((step) => ({
    ...step,
    run: (timeoutMs, signal) =>
      step.run(timeoutMs, signal).catch((error: unknown) => describeCallError(error, options)),
  }));
}

function describeCallError(error: unknown, { describeOption, addresses }: ResolvedOptions): Finding {
  if (!(error instanceof ServiceError)) throw error;
  const {
    hint = `Check ${describeOption(addresses.baseOption)}, and that ${describeOption('environment')} and ${describeOption('authentication')} are those of this application. If the failure may be temporary, run the doctor again.`,
  } = error;
  const { status, correlationId } = error as Partial<ServiceApiError>;
  const message = `${messageSentence(error)}${correlationId ? ` Correlation id: ${correlationId}.` : ''}`;
  if (status !== 429) return failed(message, hint);
  return warning(`${message} The server can be reached, and it did not refuse the credentials.`, hint);
}

function describeLifetime({ expiresAt }: AccessToken): string {
  const seconds = Math.round((expiresAt.getTime() - Date.now()) / 1000);
  return seconds > 1 ? `valid for ${seconds} s` : 'without a lifetime, so it is used for one second';
}
