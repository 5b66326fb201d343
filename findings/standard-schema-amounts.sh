#!/usr/bin/env bash
# joi 18.3.2, yup 1.7.1, zod 4.6.7, valibot 1.5.0, arktype 2.2.9: one Standard Schema interface, a number in the schema, a text in the body.
#
# Expected: `['~standard'].validate()` of five libraries judges { amount: "10.50" } against "amount is a number" in one way.
# Seen: joi and yup convert it: the value is 10.5, without an issue. The others refuse it. Whoever changes the library behind
# `~standard` changes what an API's amounts become. And yup has the place in a list as a text ("1"), the others as a number (1).
#
#   joi 10.5, yup 10.5, zod refused, valibot refused, arktype refused
#   path of a fault in [ok, fault]: joi [1,"amount"], yup ["1","amount"], zod, valibot and arktype [1,"amount"]
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts joi@18.3.2 yup@1.7.1 zod@4.6.7 valibot@1.5.0 arktype@2.2.9
cat >run.mjs <<'JS'
import assert from 'node:assert/strict';
import { type } from 'arktype';
import Joi from 'joi';
import * as v from 'valibot';
import * as yup from 'yup';
import { z } from 'zod';

const schemas = {
  joi: Joi.array().items(Joi.object({ amount: Joi.number().required() })),
  yup: yup.array().of(yup.object({ amount: yup.number().required() })),
  zod: z.array(z.object({ amount: z.number() })),
  valibot: v.array(v.object({ amount: v.number() })),
  arktype: type({ amount: 'number' }).array(),
};
const seen = {};
for (const [name, { '~standard': standard }] of Object.entries(schemas)) {
  const { issues, value } = await standard.validate([{ amount: '10.50' }]);
  const faulty = await standard.validate([{ amount: 1 }, { amount: 'x' }]);
  const path = [...faulty.issues[0].path].map((segment) => segment.key ?? segment);
  seen[name] = [issues ? 'refused' : value[0].amount, path];
}
console.log(seen);
assert.deepEqual(seen, {
  joi: [10.5, [1, 'amount']],
  yup: [10.5, ['1', 'amount']],
  zod: ['refused', [1, 'amount']],
  valibot: ['refused', [1, 'amount']],
  arktype: ['refused', [1, 'amount']],
});
JS
node run.mjs
