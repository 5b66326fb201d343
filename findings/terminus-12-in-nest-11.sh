#!/usr/bin/env bash
# @nestjs/terminus 12.1.0 with NestJS 11 (CommonJS) and jest 30, Node 20.19 and later: `npm i @nestjs/terminus` in an application of NestJS 11.
#
# Expected: npm refuses a version that does not work there, as it does for @nestjs/swagger 12 (ERESOLVE).
# Seen: the peer dependencies allow NestJS 11, so npm installs version 12, which consists of ES modules. The application starts, because Node
# can require() them. But each jest test that imports the module fails. Version 11 works in both.
#
#   12.1.0: node loads it, jest: Must use import to load ES Module
#   11.1.1: node loads it, jest passes
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm pkg set type=commonjs
cat >health.test.js <<'JS'
test('loads terminus', () => expect(require('@nestjs/terminus').TerminusModule).toBeDefined());
JS
look() {
  npm i --silent --no-audit --no-fund --ignore-scripts "@nestjs/terminus@$1" @nestjs/common@11.2.10 @nestjs/core@11.2.10 reflect-metadata@0.2.2 rxjs@7.8.2 jest@30.5.2
  node -e "require('@nestjs/terminus').TerminusModule || process.exit(1)" && echo "$1: node loads it"
  if npx --no-install jest >jest.log 2>&1; then echo "$1: jest passes"; else echo "$1: $(grep -o -m 1 'Must use import to load ES Module' jest.log)"; fi
}
seen="$(look 12.1.0)
$(look 11.1.1)"
echo "$seen"
test "$seen" = '12.1.0: node loads it
12.1.0: Must use import to load ES Module
11.1.1: node loads it
11.1.1: jest passes'
