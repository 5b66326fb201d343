import { Controller, Get, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  BanksService,
  LinkSdkService,
  ServiceAuthService,
  ServiceExceptionFilter,
  ServiceHttpService,
  ServiceModule,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { get } from 'node:https';
import { outputOf, printed, startAgain, until } from './again.js';
import { run } from './run.js';

/** Milliseconds of http.shutdownTimeout. A call may take ten minutes: one that ends sooner was aborted. */
const GRACE = 1_000;
const CALL = 600_000;

let inbound = 0;

@Controller()
class HostController {
  constructor(
    private readonly banks: BanksService,
    private readonly sdk: LinkSdkService,
    private readonly http: ServiceHttpService,
    private readonly auth: ServiceAuthService,
  ) {}

  /** How many requests have begun a call. */
  @Get('inbound')
  count(): unknown {
    return { inbound };
  }

  @Get('banks')
  list(): Promise<unknown> {
    return this.banks.list();
  }

  @Get('hangs')
  hangs(): Promise<unknown> {
    inbound += 1;
    return this.http.get('/hangs');
  }

  @Post('hangs')
  send(): Promise<unknown> {
    inbound += 1;
    return this.http.post('/hangs', {});
  }

  @Get('busy')
  busy(): Promise<unknown> {
    inbound += 1;
    return this.http.get('/busy');
  }

  @Get('session')
  session(): Promise<unknown> {
    inbound += 1;
    return this.sdk.connectParameters({ customer_id: `c-${inbound}`, permissions: ['identity'] });
  }

  /** A client of the host's own over the module's connections. */
  @Get('own')
  own(): Promise<unknown> {
    inbound += 1;
    return new Promise((resolve, reject) => {
      get(`${process.env.SERVICE_BASE_URL}/own`, { agent: this.auth.httpsAgent }, () =>
        reject(new Error('answered')),
      ).on('error', ({ code }: NodeJS.ErrnoException) => resolve({ code }));
    });
  }
}

@Module({ imports: [ServiceModule.forRoot()], controllers: [HostController] })
class HostModule {}

/** How the host is told to end: by Nest's shutdown hooks, or by its own call of close(), after which nothing keeps it running. */
type Ending = 'hooks' | 'close';

async function host(platform: string, ending: Ending): Promise<void> {
  const logger = ['error', 'warn'] as ('error' | 'warn')[];
  const app =
    platform === 'fastify'
      ? await NestFactory.create(HostModule, new FastifyAdapter(), { logger })
      : await NestFactory.create(HostModule, { logger });
  if (ending === 'hooks') app.enableShutdownHooks();
  else process.once('SIGTERM', () => void app.close());
  app.useGlobalFilters(new ServiceExceptionFilter());
  await app.listen(0, '127.0.0.1');
  console.log(`listening at ${await app.getUrl()} `);
}

interface Answer {
  status?: number;
  body: Record<string, unknown>;
}

/** Keeps its connections alive, as a load balancer does. */
const agent = new Agent({ keepAlive: true });

function call(method: string, url: string): Promise<Answer> {
  // An answer of the host itself leaves its connection open, and Node's server waits for that.
  const connection = url.endsWith('/own') ? new Agent() : agent;
  return new Promise((resolve, reject) => {
    request(url, { method, agent: connection }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('error', reject).on('end', () => {
        resolve({ status: response.statusCode, body: JSON.parse(text) as Record<string, unknown> });
      });
    })
      .on('error', reject)
      .end();
  });
}

/** The first to get a connection, and a change: only of this one nobody knows whether it was executed. */
const SENT = 'POST /hangs';

/** Calls that run when the signal comes: more than the connections that the host may open. */
const WAITING = [
  // Answered 503 with a long Retry-After: in the pause before another attempt.
  ...Array<string>(4).fill('GET /busy'),
  // Each for a customer of its own: waiting for a token.
  ...Array<string>(5).fill('GET /session'),
  SENT,
  ...Array<string>(4).fill('GET /hangs'),
  'POST /hangs',
  'GET /own',
];

async function check(simulator: ServiceSimulator, platform: string, ending: Ending): Promise<void> {
  simulator.clearFaults();
  const child = startAgain([platform, ending], {
    ...simulator.env({ environment: 'production', authentication: 'oauth' }),
    SERVICE_HTTP_TIMEOUT: String(CALL),
    SERVICE_HTTP_SHUTDOWN_TIMEOUT: String(GRACE),
    SERVICE_HTTP_MAX_SOCKETS: '3',
  });
  try {
    const output = outputOf(child);
    const url = await printed(output, child, /listening at (\S+) /);
    assert.equal((await call('GET', `${url}/banks`)).status, 200);
    simulator.fail({ path: '/busy', times: 100, fault: { status: 503, headers: { 'retry-after': '300' } } });
    simulator.fail({ face: 'token', times: 100, fault: 'hang' });
    simulator.fail({ path: /hangs|own/, times: 100, fault: 'hang' });
    simulator.clearRequests();
    const answers: Promise<Answer>[] = [];
    const arrived = (path: string): number => simulator.requests.filter((one) => one.path === path).length;
    for (const [index, line] of WAITING.entries()) {
      const [method = '', path = ''] = line.split(' ');
      answers.push(call(method, url + path));
      // In this order, so that hanging calls do not use all connections.
      await until(async () => (await call('GET', `${url}/inbound`)).body.inbound === index + 1);
      if (path === '/busy') await until(() => arrived('/busy') === index + 1);
    }
    await until(() => arrived('/hangs') === 3);

    const from = output().length;
    const signalled = performance.now();
    child.kill('SIGTERM');
    const all = await Promise.all(answers);
    const answered = performance.now();
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    const ended = performance.now();
    assert.deepEqual([code, signal], ending === 'hooks' ? [null, 'SIGTERM'] : [0, null]);
    checkAnswers(all);
    checkLog(output().slice(from));
    const ms = (time: number): string => `${Math.round(time - signalled)} ms`;
    console.log(
      `${platform}, ${ending}: ${all.length} answered after ${ms(answered)}, ended after ${ms(ended)}`,
    );
  } finally {
    child.kill('SIGKILL');
  }
}

function checkAnswers(answers: Answer[]): void {
  for (const [index, { status, body }] of answers.entries()) {
    const line = WAITING[index];
    if (line === 'GET /own') assert.match(String(body.code), /^(ERR_AGENT_CLOSED|ECONNRESET)$/);
    else {
      const isSent = index === WAITING.indexOf(SENT);
      assert.deepEqual([status, body.code], [isSent ? 502 : 503, 'connection_closed'], line);
      assert.equal(/may have been executed/.test(String(body.message)), isSent, line);
    }
  }
}

function checkLog(text: string): void {
  const lines = text.split('\n').filter((line) => line !== '');
  const [first = '', ...others] = lines;
  assert.match(
    first,
    /WARN.*Shutdown: 15 calls were still running after http\.shutdownTimeout \(1000 ms\), and aborted/,
  );
  assert.equal(others.length, 1, text);
  assert.match(
    others[0] ?? '',
    /ERROR.*502: .*POST \/hangs.*The request may have been executed: find out whether it was before you send it again \(\S+an-unknown-outcome\)\.$/,
  );
}

/** SIGTERM while inbound requests wait for calls, tokens and retries that hang: on both platforms, in real processes. */
async function main(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  try {
    await check(simulator, 'express', 'hooks');
    await check(simulator, 'fastify', 'hooks');
    await check(simulator, 'express', 'close');
  } finally {
    agent.destroy();
    await simulator.stop();
  }
}

const [, , platform, ending] = process.argv;
run(platform === undefined ? main : () => host(platform, ending as Ending));
