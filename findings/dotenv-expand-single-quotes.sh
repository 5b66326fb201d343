#!/usr/bin/env bash
# dotenv 18.0.3 with dotenv-expand 13.0.0 (as @nestjs/config 12 has them for expandVariables), and @dotenvx/dotenvx 2.38.2: a password with a
# $ in single quotes.
#
# Expected: single quotes keep a $, as in a shell, as dotenvx has it, and as a comment in many .env files says.
# Seen: dotenv removes the quotes before dotenv-expand sees the value, which is then expanded all the same: the password loses what
# follows its $. A backslash before it helps in dotenv-expand, but dotenvx keeps that backslash in single quotes, so no spelling
# suits both.
#
#                 'pa$word'   'pa\$word'
#   dotenv-expand  pa          pa$word
#   dotenvx        pa$word     pa\$word
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts dotenv@18.0.3 dotenv-expand@13.0.0 @dotenvx/dotenvx@2.38.2
cat >.env <<'ENV'
ONE='pa$word'
TWO='pa\$word'
ENV
cat >expand.cjs <<'JS'
const { expand } = require('dotenv-expand');
const { parsed } = expand({ processEnv: {}, parsed: require('dotenv').parse(require('fs').readFileSync('.env')) });
console.log('dotenv-expand', parsed.ONE, parsed.TWO);
JS
seen=$(node expand.cjs; npx --no-install dotenvx run -q -- node -p '"dotenvx " + process.env.ONE + " " + process.env.TWO')
echo "$seen"
test "$seen" = 'dotenv-expand pa pa$word
dotenvx pa$word pa\$word'
