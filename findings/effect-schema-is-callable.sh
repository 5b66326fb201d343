#!/usr/bin/env bash
# effect 4.1.0: a schema where a library takes "a function or a Standard Schema", as arktype's schemas are both.
#
# Expected: `Schema.Array(...)` has `~standard`, or is no function, so that it is refused where no parser is given.
# Seen: it has no `~standard` and is a function: called with a body, it returns undefined, whether the body fits or not. Used as a parser,
# each answer becomes undefined in silence. `Schema.toStandardSchemaV1(schema)` has `~standard`.
#
#   typeof schema: function; '~standard' in schema: false; schema(good): undefined; schema(bad): undefined
#   '~standard' in Schema.toStandardSchemaV1(schema): true
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts effect@4.1.0
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';
import { Schema } from 'effect';

const schema = Schema.Array(Schema.Struct({ id: Schema.Number }));
const seen = [typeof schema, '~standard' in schema, schema([{ id: 1 }]), schema('bad'), '~standard' in Schema.toStandardSchemaV1(schema)];
console.log(seen);
assert.deepEqual(seen, ['function', false, undefined, undefined, true]);
JS
node run.mjs
