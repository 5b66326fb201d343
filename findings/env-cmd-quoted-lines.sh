#!/usr/bin/env bash
# env-cmd 11.0.0: a .env file with a PEM over several lines in double quotes, which dotenv, `node --env-file` and shells read whole.
#
# Expected: the PEM with its line breaks, or an error that says that values over several lines are not supported.
# Seen: the variable is set to the empty text. env-cmd reports nothing and ends with 0. The same PEM in one line with \n is read.
#
#   over several lines: ''
#   in one line:        '-----BEGIN X-----\nYWJj\n-----END X-----'
#   after them:         'read'
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts env-cmd@11.0.0
cat >.env <<'ENV'
LINES="-----BEGIN X-----
YWJj
-----END X-----"
ONE="-----BEGIN X-----\nYWJj\n-----END X-----"
AFTER=read
ENV
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';

const { LINES, ONE, AFTER } = process.env;
console.log([LINES, ONE, AFTER]);
assert.deepEqual([LINES, ONE, AFTER], ['', '-----BEGIN X-----\nYWJj\n-----END X-----', 'read']);
JS
npx --no-install env-cmd -f .env node run.mjs
