import { expect, it } from '@jest/globals';
import { REGISTER, runSource } from '../helpers/source-process.js';

/** In a process of its own: Node's code has another Object.prototype than the tests of jest. */
const PROGRAM = `
  import { once } from 'node:events';
  import { Worker } from 'node:worker_threads';
  const [{ NestFactory }, { ServiceModule, BanksService, CustomersService }] = await Promise.all([
    import('@nestjs/core'),
    import(lib + '/index.ts'),
  ]);
  // A thread has an Object.prototype of its own: the service keeps a good one.
  const service = new Worker(
    \`import { once } from 'node:events';
     import http from 'node:http';
     import { parentPort } from 'node:worker_threads';
     const { ServiceSimulator } = await import(\${JSON.stringify(lib + '/testing/index.ts')});
     const { startConnectProxy } = await import(\${JSON.stringify(lib + '/../test/helpers/connect-proxy.ts')});
     const simulator = await ServiceSimulator.start();
     const proxy = await startConnectProxy();
     const options = simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' });
     const sidecar = http.createServer((request, response) => {
       response.setHeader('content-type', 'application/json');
       response.end(request.method === 'GET' ? '[]' : '{"customer_id":"c"}');
     });
     await once(sidecar.listen(0), 'listening');
     const sandboxUrl = 'http://localhost:' + sidecar.address().port;
     parentPort.postMessage([
       options,
       { ...options, http: { ...options.http, proxy: proxy.url } },
       { environment: 'sandbox', authentication: 'app-token', appToken: 'token', urls: { sandboxUrl } },
     ]);
     parentPort.on('message', () => parentPort.postMessage([
       ...simulator.requests.map(({ headers, path }) => ({ headers, path })),
       ...proxy.headers.map((headers) => ({ headers, path: 'CONNECT' })),
     ]));\`,
    { eval: true, execArgv: ['--input-type=module', '--import', ${JSON.stringify(REGISTER)}] },
  );
  const [ways] = await once(service, 'message');
  const foreign = {
    auth: 'their:password',
    setHost: false,
    host: '127.0.0.2',
    path: '/their.sock',
    socketPath: '/their.sock',
    createConnection: () => undefined,
    lookup: () => undefined,
    defaultPort: 1,
    fd: 99,
    session: 'theirs',
    localAddress: 'theirs',
    parse: () => 'theirs',
    error: 'theirs',
    scope: 'theirs',
    encoding: 'utf8',
  };
  const foreigners = ways.flatMap((options) => Object.entries(foreign).map((each) => [options, ...each]));
  for (const [options, name, value] of foreigners) {
    const host = await NestFactory.createApplicationContext(ServiceModule.forRoot(options), { logger: false });
    Object.prototype[name] = value;
    const calls = [host.get(BanksService).list(), host.get(CustomersService).create({ app_user_id: crypto.randomUUID() })];
    const outcomes = await Promise.allSettled(calls);
    delete Object.prototype[name];
    for (const { value, reason } of outcomes) {
      const what = Array.isArray(value) ? 'banks' : value?.customer_id ? 'customer' : undefined;
      console.log(name + ': ' + (what ?? reason?.name ?? value));
    }
    await host.close();
  }
  service.postMessage('requests?');
  const [requests] = await once(service, 'message');
  for (const { headers, path } of requests) {
    const isOurs = headers.host && !/basic/i.test(headers.authorization) && !JSON.stringify(headers).includes('their');
    if (!isOurs) console.log('not ours: ' + path);
  }
  await service.terminate();`;

it('sends and reads nothing that somebody put into Object.prototype', async () => {
  const { code, output } = await runSource(PROGRAM);
  const names = [
    'auth',
    'setHost',
    'host',
    'path',
    'socketPath',
    'createConnection',
    'lookup',
    'defaultPort',
    'fd',
    'session',
    'localAddress',
  ];
  const expected = [...names, 'parse', 'error', 'scope'].flatMap((name) => [
    `${name}: banks`,
    `${name}: customer`,
  ]);
  // Node's own sockets would bring text instead of bytes.
  expected.push(...Array<string>(2).fill('encoding: ServiceConnectionError'));
  // Without a proxy, through one, and to a sidecar.
  expect(output.trim().split('\n')).toEqual([...expected, ...expected, ...expected]);
  expect(code).toBe(0);
}, 60_000);
