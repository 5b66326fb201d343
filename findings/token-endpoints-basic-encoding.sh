#!/usr/bin/env bash
# oidc-provider 9.13.3, @node-oauth/oauth2-server 5.3.0 and @jmondi/oauth2-server 4.3.7: one client secret, s+e%c=t, in HTTP Basic at the
# token endpoint.
#
# Expected: the client encodes id and secret as in a form before base64 (RFC 6749, 2.3.1), each server decodes them, and the name of the
# scheme may be written in any case (RFC 9110, 11.1).
# Seen: no spelling suits the three. oidc-provider wants the encoding and answers the plain secret with invalid_request. The two others
# compare the encoded text as it is, and so accept only the plain secret. @jmondi/oauth2-server does not find the credentials
# behind "basic", and its 401 has no WWW-Authenticate, which RFC 6749, 5.2 requires. For a secret of letters and
# digits, both spellings are one.
#
#                   Basic, encoded       Basic, plain          basic, in the spelling that this server accepts
#   oidc-provider   200                  400 invalid_request   200
#   @node-oauth     401 invalid_client   200                   200
#   @jmondi         401 invalid_client   200                   400 invalid_request
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts oidc-provider@9.13.3 @node-oauth/oauth2-server@5.3.0 \
  @jmondi/oauth2-server@4.3.7 express@5.3.0
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';
import * as jmondi from '@jmondi/oauth2-server';
import { handleExpressError, handleExpressResponse } from '@jmondi/oauth2-server/express';
import NodeOauth from '@node-oauth/oauth2-server';
import express from 'express';
import { Provider } from 'oidc-provider';

const id = 'c';
const secret = 's+e%c=t';

function startOidc() {
  const client = { client_id: id, client_secret: secret, grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
  const features = { clientCredentials: { enabled: true }, devInteractions: { enabled: false } };
  return new Provider('http://127.0.0.1', { clients: [client], features }).listen(0, '127.0.0.1');
}
function startApp(answer) {
  const app = express().use(express.urlencoded());
  app.post('/token', answer);
  return app.listen(0, '127.0.0.1');
}
function startNodeOauth() {
  const model = {
    getClient: async (ofClient, given) => ofClient === id && given === secret && { id, grants: ['client_credentials'] },
    getUserFromClient: async () => ({}),
    saveToken: async (token, client, user) => ({ ...token, client, user }),
  };
  const server = new NodeOauth({ model });
  return startApp(async (request, response) => {
    const answer = new NodeOauth.Response(response);
    await server.token(new NodeOauth.Request(request), answer).catch(() => undefined);
    response.status(answer.status).set(answer.headers).send(answer.body);
  });
}
function startJmondi() {
  const client = { id, secret, name: id, redirectUris: [], allowedGrants: ['client_credentials'], scopes: [] };
  const clients = { getByIdentifier: async () => client, isClientValid: async (_, { secret }, given) => given === secret };
  const scopes = { getAllByIdentifiers: async () => [], finalize: async (found) => found };
  const tokens = {
    issueToken: async () => ({ accessToken: 't', accessTokenExpiresAt: new Date(Date.now() + 3_600_000), client, scopes: [] }),
    persist: async () => undefined,
  };
  const server = new jmondi.AuthorizationServer(clients, tokens, scopes, 'a secret that is used for signing tokens');
  server.enableGrantTypes(['client_credentials', new jmondi.DateInterval('1h')]);
  return startApp(async (request, response) => {
    try {
      handleExpressResponse(response, await server.respondToAccessTokenRequest(request));
    } catch (error) {
      handleExpressError(error, response);
    }
  });
}
async function ask(server, given, scheme) {
  const response = await fetch(`http://127.0.0.1:${server.address().port}/token`, {
    method: 'POST',
    headers: { authorization: `${scheme} ${Buffer.from(`${id}:${given}`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  });
  const { error = '' } = await response.json();
  return `${response.status} ${error}${response.status === 401 && !response.headers.has('www-authenticate') ? ', no WWW-Authenticate' : ''}`.trim();
}
const encoded = encodeURIComponent(secret);
const seen = {};
for (const [name, start, accepted] of [['oidc', startOidc, encoded], ['node-oauth', startNodeOauth, secret], ['jmondi', startJmondi, secret]]) {
  const server = start();
  await new Promise((resolve) => setTimeout(resolve, 200));
  seen[name] = [await ask(server, encoded, 'Basic'), await ask(server, secret, 'Basic'), await ask(server, accepted, 'basic')];
}
console.log(seen);
assert.deepEqual(seen, {
  oidc: ['200', '400 invalid_request', '200'],
  'node-oauth': ['401 invalid_client', '200', '200'],
  jmondi: ['401 invalid_client, no WWW-Authenticate', '200', '400 invalid_request'],
});
process.exit();
JS
node run.mjs 2>/dev/null
