import { HttpModule, HttpService } from '@nestjs/axios';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CustomersService, ServiceApiError, ServiceHttpService, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { Agent } from 'node:https';
import { createRequire } from 'node:module';
import { type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { run } from '../run.js';

/** What both copies of axios have, whose types differ. */
interface Client {
  defaults: { headers: { common: object } };
  interceptors: { request: { use(see: <T>(config: T) => T): unknown } };
  post(url: string, data: object): Promise<unknown>;
}

/** What arrived at another service of the host, each as one text. */
const arrived: string[] = [];

async function otherService(): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      arrived.push(inspect([request.method, request.url, request.headers, body]));
      response.end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Which clients of the host saw a call pass. */
const seen: string[] = [];

/** Settings that suit the host's other service, and an interceptor. */
function set(client: Client, name: string, baseURL: string): void {
  Object.assign(client.defaults, {
    baseURL,
    params: { key: 'theirs' },
    paramsSerializer: { serialize: () => 'serialized=theirs' },
    auth: { username: 'theirs', password: 'theirs' },
    transformRequest: [() => 'theirs'],
    transformResponse: [() => 'theirs'],
    validateStatus: () => true,
    withCredentials: true,
    withXSRFToken: true,
    xsrfHeaderName: 'x-theirs',
  });
  Object.assign(client.defaults.headers.common, { Authorization: 'Basic theirs', 'X-Theirs': 'theirs' });
  client.interceptors.request.use((config) => {
    seen.push(name);
    return config;
  });
}

/** Settings with which no call would get anywhere. */
const HOSTILE = {
  adapter: () => Promise.reject(new Error('the adapter of the host')),
  timeout: 1,
  proxy: { host: '127.0.0.1', port: 1 },
  maxRedirects: 5,
  maxContentLength: 1,
  maxBodyLength: 1,
  responseType: 'stream',
  signal: AbortSignal.abort(),
  httpsAgent: new Agent({ maxVersion: 'TLSv1.2', ca: [] }),
} as const;

function end(client: Client, calm: object): void {
  const defaults = client.defaults as Record<string, unknown>;
  for (const key of Object.keys(HOSTILE)) {
    if (key in calm) defaults[key] = calm[key as never];
    else delete defaults[key];
  }
}

/** What each client of the host sends, and what it is set to. */
async function state(clients: Record<string, Client>): Promise<object> {
  arrived.length = 0;
  seen.length = 0;
  for (const client of Object.values(clients)) await client.post('/own', { own: true });
  const defaults = Object.values(clients).map((client) => inspect(client.defaults, { depth: 9 }));
  const { length } = Object.values(clients);
  assert.deepEqual([arrived.length, seen.length], [length, length]);
  return { arrived: [...arrived], seen: [...seen], defaults };
}

async function callService(
  simulator: ServiceSimulator,
  customers: CustomersService,
  http: ServiceHttpService,
): Promise<void> {
  simulator.clearRequests();
  assert.equal((await customers.create({ app_user_id: 'u-1' }))?.app_user_id, 'u-1');
  assert.ok(Array.isArray(await http.get('/banks/v1', { params: { limit: 2 } })));
  simulator.fail({ path: '/banks/v1', fault: { status: 404 } });
  await assert.rejects(http.get('/banks/v1'), ServiceApiError);
  const [created, listed] = simulator.apiRequests;
  assert.equal(listed?.path, '/banks/v1?limit=2');
  for (const request of [created, listed]) {
    assert.equal(request?.certificateSubject, simulator.application.subject);
    assert.match(request.headers.authorization ?? '', /^Bearer ./);
    assert.doesNotMatch(JSON.stringify(request), /theirs/i);
  }
}

/** Whatever the host does to axios for its other calls, ours do not notice, and its own do not notice us. */
async function main(): Promise<void> {
  const esm = (await import('axios')).default;
  const cjs = createRequire(join(process.cwd(), 'package.json'))('axios') as Client;
  assert.notEqual(esm.defaults, cjs.defaults);
  const { server, url } = await otherService();
  const simulator = await ServiceSimulator.start();
  const options = simulator.moduleOptions({
    environment: 'production',
    authentication: 'oauth',
    clientCertificate: true,
  });
  @Module({ imports: [HttpModule.register({}), ServiceModule.forRoot(options)] })
  class HostModule {}
  try {
    for (const [name, client] of Object.entries({ esm, cjs })) set(client, name, url);
    const calm = { ...esm.defaults };
    const ofGlobal = await state({ esm, cjs });
    for (const client of [esm, cjs]) Object.assign(client.defaults, HOSTILE);
    const app = await NestFactory.createApplicationContext(HostModule, { logger: false });
    // Made of the defaults of its copy of axios; HttpModule without register() is that copy itself.
    const own = app.get(HttpService).axiosRef;
    const clients = { esm, cjs, own };
    set(own, 'own', url);
    for (const client of Object.values(clients)) end(client, calm);
    const before = await state(clients);
    assert.deepEqual(await state({ esm, cjs }), ofGlobal);

    for (const client of Object.values(clients)) Object.assign(client.defaults, HOSTILE);
    seen.length = 0;
    await callService(simulator, app.get(CustomersService), app.get(ServiceHttpService));
    assert.deepEqual(seen, []);
    for (const client of Object.values(clients)) end(client, calm);
    assert.deepEqual(await state(clients), before);
    await app.close();
  } finally {
    await simulator.stop();
    server.close();
  }
}

run(main);
