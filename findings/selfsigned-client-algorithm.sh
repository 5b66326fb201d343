#!/usr/bin/env bash
# selfsigned 5.5.0, Node 20: `clientCertificate: { algorithm: 'sha256' }`, for a test of mutual TLS. Its documentation: "Signature algorithm
# for client cert".
#
# Expected: a client certificate that is signed with SHA-256.
# Seen: it is signed with SHA-1, the default of the outer `algorithm`: the option has no effect. Node (OpenSSL 3) refuses to load it, so
# the test ends before its first handshake. The server's certificate, signed with SHA-1 too, is loaded, because OpenSSL does not
# check the signature of a self-signed certificate. Only the outer `algorithm` helps.
#
#   { clientCertificate: { algorithm: 'sha256' } }:      server's sha1, loaded; client's sha1, ERR_SSL_CA_MD_TOO_WEAK
#   { algorithm: 'sha256', clientCertificate: true }:    server's sha256, loaded; client's sha256, loaded
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts selfsigned@5.5.0
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createSecureContext } from 'node:tls';
import selfsigned from 'selfsigned';

function look(cert, key) {
  const text = execFileSync('openssl', ['x509', '-noout', '-text'], { input: cert, encoding: 'utf8' });
  const algorithm = /Signature Algorithm: (\S+)With/.exec(text)[1];
  try {
    createSecureContext({ cert, key });
    return `${algorithm}, loaded`;
  } catch ({ code }) {
    return `${algorithm}, ${code}`;
  }
}

const seen = [];
for (const options of [{ clientCertificate: { algorithm: 'sha256' } }, { algorithm: 'sha256', clientCertificate: true }]) {
  const made = await selfsigned.generate([{ name: 'commonName', value: 'localhost' }], options);
  seen.push([look(made.cert, made.private), look(made.clientcert, made.clientprivate)]);
}
console.log(seen);
assert.deepEqual(seen, [
  ['sha1, loaded', 'sha1, ERR_SSL_CA_MD_TOO_WEAK'],
  ['sha256, loaded', 'sha256, loaded'],
]);
JS
node run.mjs
