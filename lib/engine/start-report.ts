import { type ResolvedOptions } from '../config/resolved-options.js';
import { type ServiceIo, warnOnce } from '../exchange/io.js';
import { type Identity } from '../tls/client-identity.js';

/** Logs one line about the client when the application has started, without secrets, and warns of probable mistakes. */
export function reportStart(
  options: ResolvedOptions,
  identity: Pick<Identity, 'certificate' | 'status' | 'lacksChain'>,
  io: Pick<ServiceIo, 'log' | 'warned'>,
  versions: Partial<NodeJS.ProcessVersions> = process.versions,
): void {
  const { environment, authentication, addresses, describeOption } = options;
  const hint = environment === 'sandbox' && !options.http.logCalls;
  io.log.log(
    `${environment}, ${authentication}: calls go to ${addresses.baseUrl}${describeProxy(options, addresses.baseUrl)}; ${describeIdentity(identity)}; ${describeTokens(options)}` +
      (hint ? `. To see each call in the log, set ${describeOption('http.logCalls')} to true.` : ''),
  );
  const warn = (text: string): void => warnOnce(io, text);
  const unsupported = unsupportedRuntime(versions);
  if (unsupported) warn(unsupported);
  if (identity.lacksChain) {
    warn(
      `${describeOption('tls.chain')} is not set: the service's certificate is verified against Node's ` +
        'public roots, not against the chain that the developer portal offers for download. With a client certificate, production ' +
        `does not start so; if public roots are meant, set ${describeOption('tls.publicRoots')} to true.`,
    );
  }
}

/** Says what does not work on a runtime. test/consumers/runtimes.mjs tests what does. */
function unsupportedRuntime({ deno, bun = '1.4' }: Partial<NodeJS.ProcessVersions>): string | undefined {
  if (deno !== undefined) {
    return (
      `Deno ${deno} is not supported: a request, a POST too, is sent twice if a connection that was used before ends ` +
      'without an answer, and a call that timed out can keep its place in http.maxSockets (denoland/deno#36786). Use ' +
      'Node, or Bun 1.4.'
    );
  }
  const [major, minor] = bun.split('.').map(Number);
  if (major > 1 || minor >= 4) return undefined;
  return `Bun ${bun} is not supported: it ignores tls.chain, so that calls fail. Use Bun 1.4 or later, or Node.`;
}

function describeIdentity({ certificate, status }: Pick<Identity, 'certificate' | 'status'>): string {
  if (!certificate) return 'no client certificate';
  const { daysLeft = 0 } = status;
  const left = daysLeft < 0 ? 'expired' : `${daysLeft} day${daysLeft === 1 ? '' : 's'} left`;
  return `client certificate "${certificate.subject}", ${left}`;
}

/** The proxy's host, without the password that its URL may have. */
function describeProxy({ http }: ResolvedOptions, address: string): string {
  const proxy = http.proxyFor?.(address);
  return proxy ? ` through the proxy ${new URL(proxy.reveal()).host}` : '';
}

function describeTokens(options: ResolvedOptions): string {
  const { addresses, oauth, tokenStore } = options;
  if (!oauth || addresses.tokenUrl === undefined) return 'no OAuth tokens';
  const kept = tokenStore ? 'shared through tokenStore' : 'kept in this process';
  return `tokens from ${new URL(addresses.tokenUrl).host}${describeProxy(options, addresses.tokenUrl)}, ${kept}`;
}
