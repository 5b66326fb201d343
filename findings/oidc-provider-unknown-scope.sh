#!/usr/bin/env bash
# oidc-provider 9.13.3, Node 20 to 24: the client credentials grant with a scope that the server does not know.
#
# Expected: 400 invalid_scope (RFC 6749, 5.2), as for a scope that the client may not have.
# Seen: 200 with a token, and the unknown scope is dropped. If nothing is left, the response has no `scope` at all. By RFC 6749,
# 5.1 a response without `scope` means that the scope is the requested one, so a client that follows the RFC believes that it
# got what it did not get, and fails later at the API.
#
#   "known":         200, scope "known"
#   "unknown":       200, no scope
#   "known unknown": 200, scope "known"
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts oidc-provider@9.13.3
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';
import { Provider } from 'oidc-provider';

const client = { client_id: 'c', client_secret: 's', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
const provider = new Provider('http://127.0.0.1', {
  clients: [client],
  scopes: ['known'],
  features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
});
const server = provider.listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const seen = [];
for (const scope of ['known', 'unknown', 'known unknown']) {
  const response = await fetch(`http://127.0.0.1:${server.address().port}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('c:s')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope }),
  });
  const body = await response.json();
  seen.push([scope, response.status, typeof body.access_token, body.scope]);
}
console.log(seen);
assert.deepEqual(seen, [
  ['known', 200, 'string', 'known'],
  ['unknown', 200, 'string', undefined],
  ['known unknown', 200, 'string', 'known'],
]);
process.exit();
JS
node run.mjs
