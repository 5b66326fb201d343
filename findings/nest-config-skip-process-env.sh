#!/usr/bin/env bash
# @nestjs/config 12.0.1: ConfigModule.forRoot({ skipProcessEnv: true }) with a .env file.
#
# Expected: ConfigService leaves out the variables of the process, and still has those of .env, which the option's name and
# description ("process environment variables") do not mention.
# Seen: get() returns undefined for a variable of .env too, although ConfigModule has read the file and set process.env: without a
# validation, process.env is the only place where ConfigModule keeps it. With any `validate` function, the variables of .env are there,
# and so are those of the process, which were to be left out.
#
#   skipProcessEnv:               .env undefined, process undefined
#   skipProcessEnv and validate:  .env "file", process "process"
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts @nestjs/config@12.0.1 @nestjs/common@12.5.1 @nestjs/core@12.5.1 \
  @nestjs/testing@12.1.1 reflect-metadata@0.2.2 rxjs@7.8.2
echo 'OF_FILE=file' >.env
cat >run.mjs <<'JS'
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { Test } from '@nestjs/testing';

process.env.OF_PROCESS = 'process';
const seen = [];
for (const more of [{}, { validate: (config) => config }]) {
  const imports = [ConfigModule.forRoot({ skipProcessEnv: true, ...more })];
  const module = await Test.createTestingModule({ imports }).compile();
  const config = module.get(ConfigService);
  seen.push([config.get('OF_FILE'), config.get('OF_PROCESS'), process.env.OF_FILE]);
  delete process.env.OF_FILE;
}
console.log(seen);
assert.deepEqual(seen, [
  [undefined, undefined, 'file'],
  ['file', 'process', 'file'],
]);
JS
node run.mjs
