import { type RegisteredApplication } from '../application.js';
import { type SimulatorOptions } from '../simulator.options.js';
import { type TokenIssuer } from '../token-issuer.js';
import { answerLinkSdk } from '../link-sdk/answer-link-sdk.js';
import { checkAccess } from './access.js';
import { answerApiCall, defaultBanks, type SimulatedCustomer } from './answer-api-call.js';
import { type ServersSettings } from './start-servers.js';
import { answerTokenRequest } from './answer-token-request.js';

interface RespondersParts {
  options: SimulatorOptions;
  appTokenHeader: string;
  application: RegisteredApplication;
  issuer: TokenIssuer;
  /** Where those that are created go. */
  customers: SimulatedCustomer[];
  /** Seconds that a token issued now lives. */
  tokenLifetime: () => number;
}

/** What the API's servers and the token servers answer. */
export function responders(parts: RespondersParts): Pick<ServersSettings, 'api' | 'token'> {
  const { options, appTokenHeader, application, issuer, customers, tokenLifetime } = parts;
  const oauthEnabled = options.oauth?.enabled ?? true;
  const acceptBoth = options.acceptBoth ?? false;
  const access = { application, issuer, appTokenHeader, oauthEnabled, acceptBoth };
  const api = {
    banks: options.banks ?? defaultBanks(),
    customers,
    hiddenHeaders: ['authorization', appTokenHeader.toLowerCase()],
  };
  const certificateBoundTokens = options.certificateBoundTokens ?? false;
  const token = { application, issuer, oauthEnabled, certificateBoundTokens, lifetime: tokenLifetime };
  const sessions = { application, issuer, oauthEnabled };
  return {
    api: (request, path) =>
      answerLinkSdk(request, path, sessions) ??
      checkAccess(request, access) ??
      answerApiCall(request, path, api),
    token: (request, path) => answerTokenRequest(request, path, token),
  };
}
