#!/usr/bin/env bash
# @nestjs/microservices 12.1.1 with NestJS 12.5.1 and @grpc/grpc-js 1.14.7: an error in a handler with @GrpcStreamCall(), as in one that calls
# another service for each message of a stream.
#
# Expected: the caller gets the code of an RpcException, as from @GrpcMethod() and @GrpcStreamMethod(), and exception filters see it.
# Seen: the filter sees the error, but what it returns is used by nobody. The caller gets no answer and waits for its deadline, or for ever
# without one. The handler's promise rejects unhandled, which ends a process that has no listener for `unhandledRejection`. The handler
# has to catch its errors itself and to give them to call.emit('error', ...).
#
#   @GrpcMethod():        9 no, unhandled 0
#   @GrpcStreamMethod():  9 no, unhandled 0
#   @GrpcStreamCall():    4 (DEADLINE_EXCEEDED), unhandled 1
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null && npm i --silent --no-audit --no-fund --ignore-scripts @nestjs/common@12.5.1 @nestjs/core@12.5.1 @nestjs/microservices@12.1.1 \
  @grpc/grpc-js@1.14.7 @grpc/proto-loader@0.8.1 reflect-metadata@0.2.2 rxjs@7.8.2
cat >t.proto <<'PROTO'
syntax = "proto3";
package t;
service Service {
  rpc Method (Message) returns (Message);
  rpc StreamMethod (stream Message) returns (stream Message);
  rpc StreamCall (stream Message) returns (stream Message);
}
message Message { string id = 1; }
PROTO
cat >run.mjs <<'JS'
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { GrpcMethod, GrpcStreamCall, GrpcStreamMethod, RpcException, Transport } from '@nestjs/microservices';
import { throwError } from 'rxjs';

let unhandled = 0;
process.on('unhandledRejection', () => unhandled++);
const filtered = [];
const filter = { catch: (error) => (filtered.push(error.message), throwError(() => error.getError())) };

class Handlers {}
for (const [name, decorate] of Object.entries({ Method: GrpcMethod, StreamMethod: GrpcStreamMethod, StreamCall: GrpcStreamCall })) {
  const value = async () => {
    throw new RpcException({ code: grpc.status.FAILED_PRECONDITION, message: 'no' });
  };
  Object.defineProperty(Handlers.prototype, name, { value, configurable: true, writable: true });
  decorate('Service', name)(Handlers.prototype, name, Object.getOwnPropertyDescriptor(Handlers.prototype, name));
}
Controller()(Handlers);
class App {}
Module({ controllers: [Handlers] })(App);

const free = createServer().listen(0, '127.0.0.1');
await once(free, 'listening');
const url = `127.0.0.1:${free.address().port}`;
free.close();
const app = await NestFactory.createMicroservice(App, { transport: Transport.GRPC, logger: false, options: { url, package: 't', protoPath: 't.proto' } });
app.useGlobalFilters(filter);
await app.listen();
const client = new (grpc.loadPackageDefinition(loadSync('t.proto')).t.Service)(url, grpc.credentials.createInsecure());

const seen = {};
for (const name of ['Method', 'StreamMethod', 'StreamCall']) {
  unhandled = filtered.length = 0;
  const error = await new Promise((resolve) => {
    const options = { deadline: Date.now() + 2_000 };
    if (name === 'Method') return client.Method({ id: '1' }, options, resolve);
    const call = client[name](options).on('data', () => {}).on('error', resolve).on('end', resolve);
    call.write({ id: '1' });
    call.end();
  });
  seen[name] = [error?.code, unhandled, ...filtered];
}
console.log(seen);
assert.deepEqual(seen, { Method: [9, 0, 'no'], StreamMethod: [9, 0, 'no'], StreamCall: [4, 1, 'no'] });
process.exit();
JS
node run.mjs
