// The usual ways to a client-credentials token. Each makes `authorization()`, the value of the header, for one origin.
import { bearerTokenAuthenticationPolicy, createPipelineRequest } from '@azure/core-rest-pipeline';
import { memoize } from '@smithy/property-provider';
import tokenInterceptor from 'axios-token-interceptor';
import { randomUUID } from 'node:crypto';
import * as openid from 'openid-client';
import { startModule } from './service.mjs';

const clientId = randomUUID();
const clientSecret = randomUUID();

async function requestToken(address) {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    scope: 'api',
  });
  const response = await fetch(`${address}/oauth2/token`, { method: 'POST', body });
  if (!response.ok) throw new Error(`The token endpoint answered ${response.status}`);
  return response.json();
}

async function nestjsService(address) {
  const { auth, close } = await startModule({
    environment: 'sandbox',
    authentication: 'oauth',
    urls: { sandboxUrl: address, sandboxAuthUrl: address },
    oauth: { clientId, clientSecret },
  });
  return { authorization: async () => (await auth.authorizationHeaders()).Authorization, close };
}

/** A token in a variable, as in many tutorials. */
function handWritten(address) {
  let token;
  let expiresAt = 0;
  const authorization = async () => {
    if (!token || Date.now() > expiresAt) {
      const answer = await requestToken(address);
      token = answer.access_token;
      expiresAt = Date.now() + answer.expires_in * 1000;
    }
    return `Bearer ${token}`;
  };
  return { authorization };
}

function axiosTokenInterceptor(address) {
  const intercept = tokenInterceptor({
    getToken: tokenInterceptor.tokenCache(() => requestToken(address), {
      getMaxAge: ({ expires_in }) => expires_in * 1000,
    }),
    headerFormatter: ({ access_token }) => `Bearer ${access_token}`,
  });
  return { authorization: async () => (await intercept({ headers: {} })).headers.Authorization };
}

/** With both predicates, as the AWS SDK calls it; its window of 5 minutes would refresh these tokens on every call. */
function smithyMemoize(address) {
  const provide = async () => {
    const { access_token, expires_in } = await requestToken(address);
    return { token: access_token, expiration: new Date(Date.now() + expires_in * 1000) };
  };
  const isExpired = ({ expiration }) => expiration.getTime() <= Date.now();
  const get = memoize(provide, isExpired, ({ expiration }) => expiration !== undefined);
  return { authorization: async () => `Bearer ${(await get()).token}` };
}

/** A grant for each call: it has no cache. */
function openidClient(address) {
  const server = { issuer: address, token_endpoint: `${address}/oauth2/token` };
  const config = new openid.Configuration(server, clientId, clientSecret);
  openid.allowInsecureRequests(config);
  const grant = () => openid.clientCredentialsGrant(config, { scope: 'api' });
  return { authorization: async () => `Bearer ${(await grant()).access_token}` };
}

/** Azure's token cycler, which is private to the policy. */
function azurePolicy(address) {
  const credential = {
    getToken: async () => {
      const { access_token, expires_in } = await requestToken(address);
      return { token: access_token, expiresOnTimestamp: Date.now() + expires_in * 1000 };
    },
  };
  const policy = bearerTokenAuthenticationPolicy({ credential, scopes: 'api' });
  const authorization = async () => {
    // The policy insists on https; the request is not sent here.
    const request = createPipelineRequest({ url: 'https://localhost/api' });
    await policy.sendRequest(request, async () => ({ status: 204, headers: request.headers, request }));
    return request.headers.get('authorization');
  };
  return { authorization };
}

/** name in paths -> label and what makes one. */
export const TOKEN_CONTENDERS = {
  'nestjs-service': { label: 'nestjs-service', create: nestjsService },
  'hand-written': { label: 'hand-written recipe', create: handWritten },
  'axios-token-interceptor': { label: 'axios-token-interceptor', create: axiosTokenInterceptor },
  smithy: { label: '@smithy/property-provider memoize', create: smithyMemoize },
  'openid-client': { label: 'openid-client (a grant per call)', create: openidClient },
  azure: { label: '@azure/core-rest-pipeline bearer policy', create: azurePolicy },
};
