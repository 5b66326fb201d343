import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Body,
  Controller,
  type ExecutionContext,
  HttpCode,
  Injectable,
  Post,
  UseGuards,
  type Type,
} from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import {
  createServiceClient,
  InjectService,
  ServiceExceptionFilter,
  ServiceModule,
  type ServiceModuleOptions,
  ServiceWebhookGuard,
  WebhooksService,
} from 'nestjs-service';
import { type ServiceSimulator, stubService } from 'nestjs-service/testing';
import { readVariables } from '../../lib/config/variables.js';
import { type Platform } from '../helpers/start-host.js';
import { CollectingLogger, secretsIn } from '../helpers/secret-scan.js';
import { startSimulator } from '../helpers/simulators.js';
import { rejection } from '../helpers/start-module.js';

const HEADER = 'service-signature';
/** A body whose bytes change if it is parsed and serialized again. */
const BODY = '{ "type":  "entity.created" }';

@Controller('webhook')
class WebhookController {
  static readonly received: unknown[] = [];

  @Post()
  @HttpCode(200)
  @UseGuards(ServiceWebhookGuard)
  receive(@Body() event: unknown): void {
    WebhookController.received.push(event);
  }
}

type Application = NestExpressApplication | NestFastifyApplication;
interface HostOptions {
  rawBody?: boolean;
  bodyParser?: boolean;
  controller?: Type;
  imports?: Parameters<typeof Test.createTestingModule>[0]['imports'];
  adapter?: FastifyAdapter | ExpressAdapter;
  setUp?: (app: Application) => void;
}

let logger: CollectingLogger;
const open: Application[] = [];
let simulator: ServiceSimulator;
beforeAll(async () => {
  simulator = await startSimulator();
});
beforeEach(() => {
  logger = new CollectingLogger();
});
afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
  WebhookController.received.length = 0;
});
afterAll(() => simulator.stop());

/** Starts an application and returns the URL of its webhook route. */
async function start(
  platform: Platform,
  options: ServiceModuleOptions = simulator.moduleOptions(),
  {
    rawBody = true,
    bodyParser = true,
    controller = WebhookController,
    imports = [ServiceModule.forRoot(options)],
    adapter = platform === 'express' ? new ExpressAdapter() : new FastifyAdapter(),
    setUp,
  }: HostOptions = {},
): Promise<string> {
  const module = await Test.createTestingModule({ imports, controllers: [controller] })
    .setLogger(logger)
    .compile();
  const app = module.createNestApplication<Application>(adapter, { rawBody, bodyParser, logger });
  open.push(app);
  app.useGlobalFilters(new ServiceExceptionFilter());
  setUp?.(app);
  await app.listen(0, '127.0.0.1');
  return `${await app.getUrl()}/webhook`;
}

const statusOf = async (response: Promise<Response>): Promise<number> => (await response).status;
const linesOfGuard = (): string[] => logger.linesOf('ServiceWebhookGuard');

describe.each<Platform>(['express', 'fastify'])('ServiceWebhookGuard on %s', (platform) => {
  it('ServiceWebhookGuard accepts a signed webhook of the service and answers any other with 401 and no detail', async () => {
    const url = await start(platform);
    expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(200);
    expect(await statusOf(simulator.sendWebhook(url, { type: 'consent.expired' }))).toBe(200);
    expect(await statusOf(simulator.sendWebhook(url, Buffer.from(BODY)))).toBe(200);
    expect(WebhookController.received.splice(0).map((event) => (event as { type: string }).type)).toEqual([
      'entity.created',
      'consent.expired',
      'entity.created',
    ]);
    const right = `sha512=${createHmac('sha512', simulator.webhookSecret).update(BODY).digest('hex')}`;
    const parsed = JSON.stringify(JSON.parse(BODY));
    const wrong: [body: string, signature?: string][] = [
      [parsed, right],
      [BODY, right.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))],
      [BODY, 'short'],
      [BODY, ''],
      [BODY],
      ['', right],
      ['', undefined],
    ];
    for (const [body, signature] of wrong) {
      const headers = {
        'content-type': 'application/json',
        connection: 'close',
        ...(signature !== undefined && { [HEADER]: signature }),
      };
      const response = await fetch(url, { method: 'POST', headers, body: body || undefined });
      const { status } = response;
      // Fastify refuses an empty body of this type before any guard.
      expect([body, status]).toEqual([body, platform === 'fastify' && body === '' ? 400 : 401]);
      if (status === 401) expect(await response.json()).toEqual({ statusCode: 401, message: 'Unauthorized' });
    }
    expect(WebhookController.received).toEqual([]);
    const secrets = { secret: simulator.webhookSecret, signature: right, digest: right.slice(7) };
    expect(secretsIn(JSON.stringify(logger.lines), secrets)).toEqual([]);
    // One line for all of them, as outsiders could fill the log.
    expect(linesOfGuard()).toEqual([
      'A webhook was refused with 401: its signature (header service-signature) does not fit the body and webhook.secret.',
    ]);
  });

  it('ServiceWebhookGuard uses the configured header and accepts each of several secrets', async () => {
    const options = simulator.moduleOptions();
    const url = await start(platform, { ...options, webhook: { secret: 'new\nold', header: 'X-Brand-Sig' } });
    const sign = (secret: string) => ({
      'x-brand-sig': `sha512=${createHmac('sha512', secret).update(BODY).digest('hex')}`,
    });
    for (const [secret, status] of [
      ['new', 200],
      ['old', 200],
      ['new\nold', 401],
    ] as const)
      expect(await statusOf(simulator.sendWebhook(url, BODY, sign(secret)))).toBe(status);
    // The signature is in the default header, which this module does not read.
    expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(401);
  });

  it('ServiceWebhookGuard verifies with webhook.algorithm and webhook.prefix', async () => {
    const digits = (algorithm: string) =>
      createHmac(algorithm, simulator.webhookSecret).update(BODY).digest('hex');
    const { secret } = simulator.moduleOptions().webhook;
    for (const [webhook, right] of [
      [{ algorithm: 'sha256' }, `sha256=${digits('sha256')}`],
      [{ prefix: '' }, digits('sha512')],
      [{ algorithm: 'sha1', prefix: 'v1 ' }, `v1 ${digits('sha1')}`],
    ] as const) {
      const url = await start(platform, { ...simulator.moduleOptions(), webhook: { secret, ...webhook } });
      expect(await statusOf(simulator.sendWebhook(url, BODY, { [HEADER]: right }))).toBe(200);
      expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(401);
    }
  });

  it('ServiceWebhookGuard answers 500 if the application keeps no raw body, and only the log says why', async () => {
    const url = await start(platform, undefined, { rawBody: false });
    const response = await simulator.sendWebhook(url, BODY);
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ statusCode: 500, message: 'Internal Server Error' });
    expect(linesOfGuard()).toEqual([
      expect.stringContaining('Create it with NestFactory.create(AppModule, { rawBody: true }).'),
    ]);
    expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(500);
    // Callers without a signature learn nothing from the response. Each of the two lines is logged once a minute.
    const headers = { 'content-type': 'application/json', connection: 'close' };
    for (let caller = 0; caller < 3; caller += 1)
      expect(await statusOf(fetch(url, { method: 'POST', headers, body: BODY }))).toBe(401);
    expect(linesOfGuard().slice(1)).toEqual([
      'A webhook was refused with 401: its signature (header service-signature) is missing.',
    ]);
  });

  it('ServiceWebhookGuard accepts other content types and larger bodies if the application adds a body parser', async () => {
    const long = JSON.stringify({ text: 'x'.repeat(1_100_000) });
    const xml = { 'content-type': 'application/xml' };
    const without = await start(platform);
    expect(await statusOf(simulator.sendWebhook(without, long))).toBe(413);
    const isExpress = platform === 'express';
    expect(await statusOf(simulator.sendWebhook(without, '<a/>', xml))).toBe(isExpress ? 500 : 415);
    expect(linesOfGuard()).toEqual(
      isExpress
        ? [expect.stringMatching(/no body parser accepts its content type \(application\/xml\)\. Add one/)]
        : [],
    );
    const setUp = (app: Application) => {
      const express = app as NestExpressApplication;
      express.useBodyParser('json', { limit: '2mb' });
      express.useBodyParser('text', { type: 'application/xml' });
    };
    const fastify = new FastifyAdapter({ bodyLimit: 2_000_000 });
    fastify
      .getInstance()
      .addContentTypeParser('application/xml', { parseAs: 'buffer' }, (_request, body, done) =>
        done(null, body),
      );
    const url = await start(platform, undefined, isExpress ? { setUp } : { adapter: fastify });
    expect(await statusOf(simulator.sendWebhook(url, long))).toBe(200);
    expect(await statusOf(simulator.sendWebhook(url, '<a/>', xml))).toBe(200);
    expect(String(WebhookController.received.at(-1))).toBe('<a/>');
    const other = { ...xml, [HEADER]: 'sha512=00' };
    expect(await statusOf(simulator.sendWebhook(url, '<a/>', other))).toBe(401);
  });

  it('an application with ServiceWebhookGuard does not start without a secret, and the error names the option', async () => {
    const options = { ...simulator.moduleOptions(), webhook: {} };
    const error = (await rejection(start(platform, options))) as Error;
    expect(error.message).toContain(
      'webhook.secret (SERVICE_WEBHOOK_SECRET): is missing. Webhooks are verified',
    );
  });

  it('an application does not start with an algorithm or a prefix that no signature can have', async () => {
    const webhook = { secret: 's3cret', algorithm: 'sha-265', prefix: 'v1\n' };
    const error = (await rejection(start(platform, { ...simulator.moduleOptions(), webhook }))) as Error;
    expect(error.message).toContain(
      "webhook.algorithm (SERVICE_WEBHOOK_ALGORITHM): must be a hash function that node:crypto has for an HMAC, such as sha256; it is 'sha-265'",
    );
    expect(error.message).toContain('webhook.prefix (SERVICE_WEBHOOK_PREFIX): must be a text with which');
  });

  it('ServiceWebhookGuard answers 500 while the first read of the secret fails, and the log names the option', async () => {
    const secret = () => Promise.reject(new Error('token of the vault'));
    const url = await start(platform, { ...simulator.moduleOptions(), webhook: { secret } });
    expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(500);
    const lines = JSON.stringify(logger.lines);
    expect(lines).toContain('webhook.secret (SERVICE_WEBHOOK_SECRET): its function threw');
    expect(lines).not.toContain('token of the vault');
  });

  it('a guard with the WebhooksService of a named module verifies with the secret of that module', async () => {
    @Injectable()
    class KsaWebhookGuard extends ServiceWebhookGuard {
      constructor(@InjectService(WebhooksService, 'ksa') webhooks: WebhooksService) {
        super(webhooks);
      }
    }
    @Controller('webhook')
    class KsaController {
      @Post()
      @HttpCode(200)
      @UseGuards(KsaWebhookGuard)
      receive(): void {}
    }
    const ksa = await startSimulator();
    const named = ServiceModule.forRoot({ ...ksa.moduleOptions(), name: 'ksa' });
    const imports = [ServiceModule.forRoot(simulator.moduleOptions()), named];
    const url = await start(platform, undefined, { imports, controller: KsaController });
    expect(await statusOf(ksa.sendWebhook(url, BODY))).toBe(200);
    expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(401);
    await ksa.stop();
  });

  it("a double of webhooks.verify decides in a host's test which webhooks ServiceWebhookGuard accepts", async () => {
    const builder = Test.createTestingModule({
      imports: [ServiceModule.forRoot()],
      controllers: [WebhookController],
    });
    const service = stubService(builder, { webhooks: { verify: () => true } });
    const module = await builder.compile();
    const adapter = platform === 'express' ? new ExpressAdapter() : new FastifyAdapter();
    const app = module.createNestApplication<Application>(adapter, { rawBody: true, logger });
    open.push(app);
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/webhook`;
    const headers = { 'content-type': 'application/json', connection: 'close' };
    const send = () => statusOf(fetch(url, { method: 'POST', body: BODY, headers }));
    expect(await send()).toBe(200);
    service.use({ webhooks: { verify: () => false } });
    expect(await send()).toBe(401);
    expect(service.callsOf('webhooks.verify')).toEqual([
      [Buffer.from(BODY), undefined],
      [Buffer.from(BODY), undefined],
    ]);
  });
});

/** What an application does with the body of a webhook before the guard sees it. */
interface Parsing {
  platform?: Platform;
  options?: Pick<HostOptions, 'rawBody' | 'bodyParser'>;
  use?: (app: Application, express: Express) => void;
}
interface Express {
  json(options?: object): never;
  raw(options: object): never;
  text(options: object): never;
}
const ANY_TYPE = { type: () => true };
const keepBytes = (request: { rawBody?: unknown }, _: unknown, bytes: Buffer): void => {
  request.rawBody = bytes;
};

describe('the body of a webhook', () => {
  const signed = (body: string | Buffer, more: Record<string, string> = {}) => ({
    [HEADER]: `sha512=${createHmac('sha512', simulator.webhookSecret).update(body).digest('hex')}`,
    ...more,
  });

  async function startWith({ platform = 'express', options, use }: Parsing): Promise<string> {
    const name = 'express';
    const { default: express } = (await import(name)) as { default: Express };
    return start(platform, undefined, { ...options, setUp: (app) => use?.(app, express) });
  }

  it.each<[string, Parsing]>([
    [
      'express.raw() for every content type',
      { options: { bodyParser: false }, use: (app, { raw }) => app.use(raw(ANY_TYPE)) },
    ],
    [
      'express.json() whose verify keeps the bytes',
      { use: (app, { json }) => app.use(json({ verify: keepBytes })) },
    ],
    [
      'bytes on the request of node:http, as functions-framework keeps them for Fastify',
      {
        platform: 'fastify',
        options: { rawBody: false },
        use: (app) => {
          const fastify = (app as NestFastifyApplication).getHttpAdapter().getInstance();
          fastify.addHook('preValidation', (request, _reply, done) => {
            Object.assign(request.raw, { rawBody: Buffer.from(BODY) });
            done();
          });
        },
      },
    ],
  ])('ServiceWebhookGuard uses %s', async (_, parsing) => {
    const url = await startWith(parsing);
    expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(200);
    expect(await statusOf(simulator.sendWebhook(url, BODY, signed('')))).toBe(401);
  });

  it.each<[string, Parsing, string]>([
    ['text/plain on Fastify', { platform: 'fastify' }, 'text/plain'],
    [
      'a text parser of Express',
      { options: { bodyParser: false }, use: (app, { text }) => app.use(text(ANY_TYPE)) },
      'application/json',
    ],
  ])(
    'ServiceWebhookGuard verifies the text of %s, and answers 500 if the signature does not fit it',
    async (_, parsing, type) => {
      const url = await startWith(parsing);
      const send = (body: string | Buffer, headers: Record<string, string>) =>
        statusOf(simulator.sendWebhook(url, body, { 'content-type': type, ...headers }));
      expect(await send(BODY, {})).toBe(200);
      expect(linesOfGuard()).toEqual([]);
      const decoded = Buffer.concat([Buffer.from(BODY), Buffer.from([0xff])]);
      expect(await send(decoded, signed(decoded))).toBe(500);
      expect(await send(BODY, signed(''))).toBe(500);
      expect(linesOfGuard()).toEqual([
        expect.stringMatching(/its body is a text .* the signature does not fit .* parseAs: 'buffer'/),
      ]);
    },
  );

  it.each<[string, Parsing, RegExp]>([
    [
      'express.json() before',
      { use: (app, { json }) => app.use(json()) },
      /an object .* app\.use\(express\.json\(\)\)/,
    ],
    ['bodyParser: false', { options: { bodyParser: false } }, /no body parser .* without bodyParser: false/],
  ])(
    'ServiceWebhookGuard answers 500 with %s, and the log says what to change',
    async (_, parsing, words) => {
      const url = await startWith(parsing);
      expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(500);
      expect(await statusOf(simulator.sendWebhook(url, BODY, signed('')))).toBe(500);
      expect(linesOfGuard()).toEqual([expect.stringMatching(words)]);
    },
  );

  it('ServiceWebhookGuard knows over HTTP/1 that a body is empty, also if a parser has left {}, as those of Express 4', async () => {
    const leaveObject = (request: { body?: unknown }, _: unknown, next: () => void) => {
      request.body = {};
      next();
    };
    const url = await startWith({ options: { bodyParser: false }, use: (app) => app.use(leaveObject) });
    for (const [body, headers, status] of [
      ['', signed(''), 200],
      ['', signed(BODY), 401],
      ['{}', signed(''), 500],
    ] as const) {
      const request = { method: 'POST', headers: { ...headers, connection: 'close' } };
      expect(await statusOf(fetch(url, { ...request, body: body || undefined }))).toBe(status);
    }
  });

  it.each([true, false])(
    'ServiceWebhookGuard takes no body for empty over HTTP/2, with rawBody: %j',
    async (rawBody) => {
      const adapter = new FastifyAdapter({ http2: true } as object);
      const url = new URL(await start('fastify', undefined, { adapter, rawBody }));
      const session: ClientHttp2Session = connect(url.origin);
      const send = async (body: string, headers: IncomingHttpHeaders) => {
        const type = body === '' ? {} : { 'content-type': 'application/json' };
        const stream = session.request({ ':method': 'POST', ':path': url.pathname, ...type, ...headers });
        stream.end(body);
        const [response] = (await once(stream, 'response')) as [Record<string, unknown>];
        stream.resume();
        return response[':status'];
      };
      expect(await send(BODY, signed(BODY))).toBe(rawBody ? 200 : 500);
      expect(await send(BODY, signed(''))).toBe(rawBody ? 401 : 500);
      expect(await send('', signed(''))).toBe(500);
      expect(await send(BODY, {})).toBe(401);
      session.close();
    },
  );

  it.each(['rpc', 'ws', 'graphql'])(
    'ServiceWebhookGuard says that it is for HTTP in a handler of the kind %s',
    async (kind) => {
      const guard = new ServiceWebhookGuard({ header: HEADER } as WebhooksService);
      const handler = WebhookController.prototype.receive;
      const context = { getType: () => kind, getClass: () => WebhookController, getHandler: () => handler };
      const error = await rejection(guard.canActivate(context as unknown as ExecutionContext));
      expect(String(error)).toBe(
        'Error: ServiceWebhookGuard is for HTTP controllers, and WebhookController.receive() is none.',
      );
    },
  );
});

describe('createServiceClient().webhooks', () => {
  it('webhooks.verify uses the options of createServiceClient and rejects if they have no secret', async () => {
    const webhook = { secret: 's3cret', header: 'X-Brand', algorithm: 'sha256', prefix: 'V1=' };
    const options = { ...simulator.moduleOptions(), webhook };
    const client = await createServiceClient(options);
    const signature = `v1=${createHmac('sha256', 's3cret').update(BODY).digest('hex')}`;
    expect(client.webhooks.header).toBe('x-brand');
    expect(await client.webhooks.verify(BODY, signature)).toBe(true);
    expect(await client.webhooks.verify(`${BODY} `, signature)).toBe(false);
    const parsed = client.webhooks.verify(JSON.parse(BODY) as never, signature);
    expect(await rejection(parsed)).toBeInstanceOf(TypeError);
    await client.close();

    const without = await createServiceClient({ ...options, webhook: undefined });
    expect(without.webhooks.header).toBe(HEADER);
    const message = 'webhook.secret: is missing';
    expect(String(await rejection(without.webhooks.verify(BODY, signature)))).toContain(message);
    await without.close();
  });
});

describe('simulator.sendWebhook()', () => {
  it('sendWebhook signs with the secret and header that env() and moduleOptions() give the application', async () => {
    const own = await startSimulator({ webhookHeader: 'x-brand', webhookSecret: 'of the test' });
    expect(own.env({ name: 'ksa' })).toMatchObject({
      SERVICE_KSA_WEBHOOK_SECRET: 'of the test',
      SERVICE_KSA_WEBHOOK_HEADER: 'x-brand',
    });
    const url = await start('express', own.moduleOptions());
    expect(await statusOf(own.sendWebhook(url, BODY))).toBe(200);
    expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(401);
    await own.stop();
  });

  it.each([
    [{ webhookAlgorithm: 'sha256' }, { SERVICE_WEBHOOK_ALGORITHM: 'sha256' }],
    [{ webhookPrefix: '' }, { SERVICE_WEBHOOK_PREFIX: '' }],
    [
      { webhookAlgorithm: 'sha1', webhookPrefix: 'v1=' },
      { SERVICE_WEBHOOK_ALGORITHM: 'sha1', SERVICE_WEBHOOK_PREFIX: 'v1=' },
    ],
  ])(
    'sendWebhook signs with %j, which env() and moduleOptions() give the application',
    async (given, variables) => {
      const own = await startSimulator(given);
      const env = own.env();
      expect(env).toMatchObject(variables);
      const { options: fromVariables } = readVariables((variable) => env[variable]);
      for (const options of [own.moduleOptions(), fromVariables]) {
        const url = await start('express', options);
        expect(await statusOf(own.sendWebhook(url, BODY))).toBe(200);
        expect(await statusOf(simulator.sendWebhook(url, BODY))).toBe(401);
      }
      await own.stop();
    },
  );
});
