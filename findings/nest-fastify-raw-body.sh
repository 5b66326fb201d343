#!/usr/bin/env bash
# @nestjs/platform-fastify 11.2.8 and 12.5.0: an application with { rawBody: true } adds a body parser for XML.
#
# Expected: app.useBodyParser('application/xml') leaves the parser of JSON alone: request.rawBody is there, as on Express.
# Seen: in 11.2.8, the first useBodyParser() keeps Nest from registering its own parsers of JSON and forms. Fastify's parser reads the
# JSON, and rawBody is undefined, so that the signature of a webhook cannot be verified. In 12.5.0, rawBody stays.
#
#   11.2.8: without useBodyParser 7 bytes, with it undefined
#   12.5.0: without useBodyParser 7 bytes, with it 7 bytes
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
cat >run.cjs <<'JS'
require('reflect-metadata');
const { NestFactory } = require('@nestjs/core');
const { Controller, Module, Post, Req } = require('@nestjs/common');
const { FastifyAdapter } = require('@nestjs/platform-fastify');

class Hooks {
  post(request) {
    return String(request.rawBody?.length);
  }
}
Req()(Hooks.prototype, 'post', 0);
Post()(Hooks.prototype, 'post', Object.getOwnPropertyDescriptor(Hooks.prototype, 'post'));
Controller('hooks')(Hooks);
class App {}
Module({ controllers: [Hooks] })(App);

(async () => {
  const seen = [];
  for (const hasParser of [false, true]) {
    const app = await NestFactory.create(App, new FastifyAdapter(), { rawBody: true, logger: false });
    if (hasParser) app.useBodyParser('application/xml', {}, (_request, body, done) => done(null, body));
    await app.listen(0, '127.0.0.1');
    const headers = { 'content-type': 'application/json' };
    seen.push(await (await fetch(`${await app.getUrl()}/hooks`, { method: 'POST', headers, body: '{"a":1}' })).text());
    await app.close();
  }
  console.log(`${process.argv[2]}: ${seen.join(', ')}`);
})();
JS
seen=$(for version in 11.2.8:11 12.5.0:12; do
  mkdir "${version#*:}" && cp run.cjs "${version#*:}" && cd "${version#*:}"
  npm init -y >/dev/null
  npm i --silent --no-audit --no-fund --ignore-scripts "@nestjs/platform-fastify@${version%:*}" "@nestjs/common@${version%:*}" "@nestjs/core@${version%:*}" \
    reflect-metadata@0.2.2 rxjs@7.8.2
  node run.cjs "${version%:*}"
  cd ..
done)
echo "$seen"
test "$seen" = '11.2.8: 7, undefined
12.5.0: 7, 7'
