import { type AccessToken } from '../../auth/access-token.js';
import { type ResolvedOptions } from '../../config/resolve-options.js';
import { createClient, systemIo } from '../../engine/create-client.js';
import { messageSentence, type ServiceApiError, ServiceError } from '../../errors/index.js';
import { type Exchange } from '../../exchange/io.js';
import { parseHttpDate } from '../../exchange/response.js';
import { SILENT } from '../../telemetry/telemetry.js';
import { systemClock, within } from '../../time/time.js';
import { type ClientIdentity } from '../../tls/client-identity.js';
import { type HandshakeFacts, judgeClientCertificate, judgeServer, shakeHands } from './handshake.js';
import { failed, type Finding, ok, type Reporter, skipped, warning } from './report.js';

/** Time limits of each check that connects, and of all of them together. */
export const LIMITS = { stepMs: 10_000, totalMs: 60_000 };

type Step = (timeoutMs: number, signal: AbortSignal) => Promise<Finding>;
type RunStep = (name: string, needs: readonly string[], step: Step) => Promise<void>;

/**
 * Connects: a handshake with each server, then the tokens and a list of banks, with a client like the application's, so that
 * it reports the same errors. Nothing is changed at the service.
 *
 * @param customer the id of a customer whose token is requested too
 */
export async function checkConnections(
  options: ResolvedOptions,
  identity: ClientIdentity,
  customer: string | undefined,
  limits: typeof LIMITS,
  reporter: Reporter,
): Promise<void> {
  const { exchange, ...realIo } = systemIo(SILENT);
  const clock = watchClock(exchange);
  const http = { ...options.http, retries: 0, shutdownTimeout: 0 };
  const once = { ...options, tokenStore: undefined, http };
  const { auth, banks, close } = createClient(once, identity, { ...realIo, exchange: clock.exchange });
  const run = stepRunner(options, limits, reporter);
  try {
    const toApi = await checkHandshake(run, options, identity, 'api');
    let hasToken = options.authentication !== 'oauth';
    let toBanks = toApi;
    if (options.oauth) {
      const toTokens = await checkHandshake(run, options, identity, 'token');
      await run('token.api', toTokens, async (timeout, signal) => {
        const token = await auth.getApiToken({ timeout, signal, once: true });
        hasToken = true;
        return ok(`The token endpoint issued an API token, ${describeLifetime(token)}.`);
      });
      const toCustomers = [...toTokens, 'token.api'];
      if (!hasToken) toBanks = [...toApi, ...toCustomers];
      if (customer !== undefined) {
        await run('token.customer', toCustomers, async (timeout, signal) => {
          const token = await auth.getCustomerToken(customer, { timeout, signal, once: true });
          return ok(`The token endpoint issued a token for this customer, ${describeLifetime(token)}.`);
        });
      }
    }
    await run('api.banks', toBanks, async (timeout, signal) => {
      // The token endpoint responded with 429, which is only a warning. Without a token the API would respond with 401, and
      // that would look like a wrong configuration.
      if (!hasToken) return skipped('Not checked, because the token endpoint issues no token at the moment.');
      await banks.list({ timeout, signal });
      return ok('GET /banks/v1 answered with JSON.');
    });
    reporter.add('clock', clock.judge());
  } finally {
    await close();
  }
}

/**
 * Shakes hands with a server once, for two checks. Returns their names. An http:// address is that of a sidecar, which does
 * TLS itself, so there is nothing to check.
 */
async function checkHandshake(
  run: RunStep,
  { addresses, describeOption, http, oauth }: ResolvedOptions,
  { hasChain, loaded }: ClientIdentity,
  server: 'api' | 'token',
): Promise<string[]> {
  const { baseUrl, baseOption, tokenUrl, tokenOption = '' } = addresses;
  const [address, option] = server === 'api' ? [baseUrl, baseOption] : [tokenUrl, tokenOption];
  const url = address === undefined ? undefined : new URL(address);
  if (url?.protocol !== 'https:') return [];
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || 443);
  const { certificate, keyType } = server === 'api' || oauth?.mtls ? loaded : {};
  const offered = { certificate, keyType, hasCertificate: certificate !== undefined, chain: loaded.chain };
  const proxy = http.proxyFor?.(url.href);
  const place = { server, url, option, describeOption, http, host, port, proxy, hasChain, ...offered };
  const name = server === 'api' ? 'api' : 'token-endpoint';
  const names = [`${name}.connection`, `${name}.client-certificate`];
  let facts: HandshakeFacts;
  await run(names[0], [], async (timeoutMs) => {
    const context = server === 'api' ? loaded.apiContext : loaded.tokenContext();
    facts = await shakeHands(place, context, timeoutMs);
    return judgeServer(place, facts);
  });
  await run(names[1], names.slice(0, 1), () => Promise.resolve(judgeClientCertificate(place, facts)));
  return names;
}

/**
 * Returns a function that runs and reports one check. A check that needs a failed one is skipped and names it, so that one
 * fault is reported as failed once and not by every check after it.
 */
function stepRunner(options: ResolvedOptions, limits: typeof LIMITS, reporter: Reporter): RunStep {
  const endsAt = performance.now() + limits.totalMs;
  return async (name, needs, step) => {
    const cause = needs.find((need) => reporter.hasFailed(need));
    if (cause !== undefined) return reporter.add(name, skipped(`Not checked, because ${cause} failed.`));
    const timeoutMs = Math.min(limits.stepMs, endsAt - performance.now());
    if (timeoutMs <= 0) return reporter.add(name, skipped('Not checked, because the time was up.'));
    reporter.begin(name);
    // A check normally ends by itself when its time is over, and says what that means. This limit is for one that hangs.
    const limit = { clock: systemClock, timeoutMs: timeoutMs + 500, expired: () => new Error('expired') };
    const finding = within(limit, (signal) => step(timeoutMs, signal));
    reporter.add(name, await finding.catch((error: unknown) => describeError(error, options)));
  };
}

function describeError(error: unknown, { describeOption, addresses }: ResolvedOptions): Finding {
  if (!(error instanceof ServiceError)) {
    const { code, name } = error as NodeJS.ErrnoException;
    const remedy = 'Run the doctor again. If the check fails again, report it with this output.';
    return failed(`The check did not finish (${code ?? name}).`, remedy);
  }
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

const TOLERATED_SKEW_MS = 30_000;
/** The Date header has a year of four digits (RFC 9110, 5.6.7). */
const MAX_DATE_MS = Date.UTC(10_000, 0);

/** Wraps an exchange and compares this machine's clock with the Date header of each response (RFC 9110, 6.6.1). */
export function watchClock(perform: Exchange, now = Date.now) {
  /** How many milliseconds the server's clock is ahead of ours: the smallest difference that was seen. */
  let skewMs = Infinity;
  const exchange: Exchange = async (request) => {
    const response = await perform(request);
    const { date, age } = response.headers;
    const answeredAt = parseHttpDate(date);
    // A response with an Age comes from a cache, so its Date is old. The header has whole seconds: assume the middle.
    const skew = age === undefined && answeredAt <= MAX_DATE_MS ? answeredAt + 500 - now() : NaN;
    if (Math.abs(skew) < Math.abs(skewMs)) skewMs = skew;
    return response;
  };
  const judge = (): Finding => {
    if (skewMs === Infinity) return skipped('No response had a Date header to compare the clock with.');
    const seconds = Math.round(Math.abs(skewMs) / 1000);
    if (Math.abs(skewMs) <= TOLERATED_SKEW_MS)
      return ok(`This machine's clock agrees with that of the service to within ${Math.max(1, seconds)} s.`);
    return warning(
      `This machine's clock is ${seconds} s ${skewMs > 0 ? 'behind' : 'ahead of'} that of the service, so valid certificates may be refused as expired or not yet valid.`,
      'Set the clock of this machine, and let it follow a time server (NTP). A container uses the clock of its host.',
    );
  };
  return { exchange, judge };
}
