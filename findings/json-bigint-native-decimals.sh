#!/usr/bin/env bash
# json-bigint 1.0.0 with { useNativeBigInt: true }: an answer with a long integer id and a fraction of more than 15 characters.
#
# Expected: "parser uses native BigInt instead of bignumber.js" for integers that a number cannot hold, and a number for a fraction, as
# JSON.parse() has it.
# Seen: the length of a number's text, with its point, decides alone whether it is "big". BigInt() then refuses the fraction, so that JSON
# which JavaScript itself writes (0.1 + 0.2) cannot be read, with an error that names no position. One digit less, and it is a number.
# Without the option, the fraction becomes a BigNumber, beside numbers for shorter fractions.
#
#   {"rate":0.1234567890123}        number
#   {"rate":0.12345678901234}       SyntaxError: Cannot convert 0.12345678901234 to a BigInt
#   {"rate":0.30000000000000004}    SyntaxError: Cannot convert 0.30000000000000004 to a BigInt
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts json-bigint@1.0.0
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';
import jsonBigint from 'json-bigint';

function look(options, text) {
  try {
    const { rate } = jsonBigint(options).parse(text);
    return typeof rate === 'object' ? rate.constructor.name : typeof rate;
  } catch ({ name, message }) {
    return `${name}: ${message}`;
  }
}
const texts = ['{"rate":0.1234567890123}', '{"rate":0.12345678901234}', JSON.stringify({ rate: 0.1 + 0.2 }), '{"rate":1234567890123456}'];
const seen = texts.map((text) => [text, look({ useNativeBigInt: true }, text), look({}, text)]);
console.log(seen);
assert.deepEqual(seen, [
  [texts[0], 'number', 'number'],
  [texts[1], 'SyntaxError: Cannot convert 0.12345678901234 to a BigInt', 'BigNumber'],
  ['{"rate":0.30000000000000004}', 'SyntaxError: Cannot convert 0.30000000000000004 to a BigInt', 'BigNumber'],
  [texts[3], 'bigint', 'BigNumber'],
]);
JS
node run.mjs
