#!/usr/bin/env bash
# @nestjs/testing 12.1.1, useMocker(): a provider with an optional dependency that nobody provides.
#
# Expected: an @Optional() dependency stays undefined: the application starts without it, and a mocker is for what is missing.
# Seen: the mocker is asked for it too, so that the test runs another branch than the application ("if (this.cache) ..."). What it
# returns for `{ token, optional: true }` of a factory is used as well.
#
#   without useMocker: undefined, undefined
#   with useMocker:    a mock, a mock
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts @nestjs/common@12.5.1 @nestjs/core@12.5.1 @nestjs/testing@12.1.1 \
  reflect-metadata@0.2.2 rxjs@7.8.2
cat >run.mjs <<'JS'
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { Test } from '@nestjs/testing';

class Consumer {
  constructor(cache) {
    this.cache = cache;
  }
}
Optional()(Consumer, undefined, 0);
Inject('CACHE')(Consumer, undefined, 0);
Injectable()(Consumer);
const factory = { provide: 'MADE', inject: [{ token: 'STORE', optional: true }], useFactory: (store) => ({ store }) };

const seen = [];
for (const isMocked of [false, true]) {
  const builder = Test.createTestingModule({ providers: [Consumer, factory] });
  if (isMocked) builder.useMocker(() => 'a mock');
  const module = await builder.compile();
  seen.push([module.get(Consumer).cache, module.get('MADE').store]);
}
console.log(seen);
assert.deepEqual(seen, [
  [undefined, undefined],
  ['a mock', 'a mock'],
]);
JS
node run.mjs
