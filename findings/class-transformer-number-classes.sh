#!/usr/bin/env bash
# class-transformer 0.5.1, as NestJS's ValidationPipe({ transform: true }) and ClassSerializerInterceptor call it, with the classes of exact
# numbers: decimal.js 10.6.0, big.js 7.0.1, bignumber.js 11.1.5 and lossless-json 4.3.3.
#
# Expected: a Decimal in a body or in a response stays a Decimal, or becomes its text through toJSON(), as JSON.stringify() writes it. A Date
# and a bigint pass.
# Seen: plainToInstance() and instanceToInstance() call the constructor without an argument, which each of the four refuses: the
# request ends with an exception of the number library, though the amount was valid. instanceToPlain() does not call toJSON() and
# copies the private fields instead: the response has digits in groups, which are not even those of the text (10.5 is [10, 5000000]).
#
#   plainToInstance(Dto, { amount: new Decimal('10.5') }):  [DecimalError] Invalid argument: undefined
#   instanceToPlain({ amount: new Decimal('10.5') }):       {"amount":{"s":1,"e":1,"d":[10,5000000]}}
#   JSON.stringify({ amount: new Decimal('10.5') }):        {"amount":"10.5"}
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts class-transformer@0.5.1 reflect-metadata@0.2.2 decimal.js@10.6.0 \
  big.js@7.0.1 bignumber.js@11.1.5 lossless-json@4.3.3
cat >run.mjs <<'JS'
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { Big } from 'big.js';
import { BigNumber } from 'bignumber.js';
import { instanceToInstance, instanceToPlain, plainToInstance } from 'class-transformer';
import { Decimal } from 'decimal.js';
import { LosslessNumber } from 'lossless-json';

class Dto {}
function outcome(transform) {
  try {
    return JSON.stringify(transform());
  } catch ({ message }) {
    return message;
  }
}
const seen = {};
for (const amount of [new Decimal('10.5'), new Big('10.5'), new BigNumber('10.5'), new LosslessNumber('10.5'), new Date(0)]) {
  const name = amount instanceof Big ? 'Big' : amount.constructor.name;
  const body = { amount };
  seen[name] = [
    outcome(() => plainToInstance(Dto, body)),
    outcome(() => instanceToInstance(Object.assign(new Dto(), body))),
    outcome(() => instanceToPlain(Object.assign(new Dto(), body))),
  ];
}
console.log(seen);
const refused = (message, plain) => [message, message, `{"amount":${plain}}`];
const date = '{"amount":"1970-01-01T00:00:00.000Z"}';
assert.deepEqual(seen, {
  Decimal: refused('[DecimalError] Invalid argument: undefined', '{"s":1,"e":1,"d":[10,5000000]}'),
  Big: refused('[big.js] Invalid number', '{"s":1,"e":1,"c":[1,0,5]}'),
  BigNumber: refused('[BigNumber Error] BigNumber, string, number, or BigInt expected: undefined', '{"s":1,"e":1,"c":[10,50000000000000]}'),
  LosslessNumber: refused('Invalid number (value: "undefined")', '{"value":"10.5","isLosslessNumber":true}'),
  Date: [date, date, date],
});
JS
node run.mjs
