import { type OnApplicationBootstrap } from '@nestjs/common';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type Log } from '../telemetry/log.js';
import { type ClientIdentity, type IdentityStatus } from '../tls/index.js';

export interface StartFacts {
  options: ResolvedOptions;
  identity: Pick<ClientIdentity, 'status' | 'hasChain'>;
  /** How many modules of the application have this name (or no name); 1 where another one reports it. */
  namesakes: number;
  log: Log;
}

/** Logs one line about the module when the application has started, and warns of probable mistakes. */
export class StartReport implements OnApplicationBootstrap {
  readonly #facts: StartFacts;

  constructor(facts: StartFacts) {
    this.#facts = facts;
  }

  onApplicationBootstrap(): void {
    const { log } = this.#facts;
    log.log(describeStart(this.#facts));
    for (const warning of startWarnings(this.#facts)) log.warn(warning);
  }
}

/** Contains no secret. */
function describeStart({ options, identity }: StartFacts): string {
  const { environment, authentication, addresses } = options;
  return [
    `${environment}, ${authentication}: calls go to ${addresses.baseUrl}`,
    describeIdentity(identity.status),
    describeTokens(options),
  ].join('; ');
}

function startWarnings({ options, identity, namesakes }: StartFacts): string[] {
  const { name, environment, authentication, oauth, appToken, linkSdk, describeOption } = options;
  const warnings: string[] = [];
  if (authentication === 'mtls' && !identity.hasChain) {
    warnings.push(
      `${describeOption('tls.chain')} is not set: the service's certificate is verified against Node's ` +
        'public roots, not against the chain that the developer portal offers for download.',
    );
  }
  if (environment === 'production' && !oauth && appToken && !linkSdk.includeAppToken) {
    warnings.push(
      'connectParameters() will send the app token to browsers, because there are no OAuth credentials: set ' +
        `${describeOption('oauth.clientId')} and ${describeOption('oauth.clientSecret')}, or ${describeOption('linkSdk.includeAppToken')} to true ` +
        'if that is intended.',
    );
  }
  if (namesakes > 1) {
    warnings.push(
      `${namesakes} ServiceModules ${name === undefined ? 'without a name' : `named '${name}'`} are in this ` +
        'application, each with its own tokens and connections. For one service, call forRoot() once, with isGlobal ' +
        'or in a module that exports ServiceModule; for several services, give each its own name.',
    );
  }
  return warnings;
}

function describeIdentity({ certificate, daysLeft = 0 }: IdentityStatus): string {
  if (!certificate) return 'no client certificate';
  const left = daysLeft < 0 ? 'expired' : `${daysLeft} day${daysLeft === 1 ? '' : 's'} left`;
  return `client certificate "${certificate.subject}", ${left}`;
}

function describeTokens({ addresses, oauth, tokenStore }: ResolvedOptions): string {
  if (!oauth || addresses.tokenUrl === undefined) return 'no OAuth tokens';
  const kept = tokenStore ? 'shared through tokenStore' : 'kept in this process';
  return `tokens from ${new URL(addresses.tokenUrl).host}, ${kept}`;
}
