import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type OpenAPIObject } from '@nestjs/swagger';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { inSoak } from '../helpers/in-soak.js';
import { deadPort } from '../helpers/loopback.js';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { cloneProject, isListening, startProcess, type SampleProcess } from '../helpers/sample-process.js';
import { startSimulator } from '../helpers/simulators.js';

const run = promisify(execFile);
const LAST_LINE = '/docs\n';
/** What `npm start` runs. */
const SOURCE = [process.execPath, 'build/start-sample.mjs'];
const browser = findProgram('chromium');
const browserIt = itWith(browser, 'the Swagger page of the sample in a browser');

describe('the sample', () => {
  let project: Awaited<ReturnType<typeof cloneProject>>;
  const started: SampleProcess[] = [];

  beforeAll(async () => {
    project = await cloneProject();
  });
  afterAll(async () => {
    await Promise.all(started.map((each) => each.kill()));
    await project.remove();
  });

  /** Starts the sample with these variables, which may name its port. */
  function start(command: string[], env?: Record<string, string>): SampleProcess {
    const sample = startProcess(command, { cwd: project.path, env });
    started.push(sample);
    return sample;
  }

  describe('in a clean clone whose .env contains only a port', () => {
    let sample: SampleProcess;
    let port: number;
    let url: string;

    beforeAll(async () => {
      port = await deadPort();
      url = `http://127.0.0.1:${port}`;
      await writeFile(join(project.path, '.env'), `PORT=${port}\n`);
      sample = start(['npm', 'start']);
      await sample.waitForOutput(LAST_LINE);
    }, 120_000);

    it('the sample prints which service it uses and the result of one call of each kind, without a secret', () => {
      const report = sample.output();
      expect(report).toMatch(
        /\nStarting the sample application, with a simulator of the service …\n\nThe sample application listens at /,
      );
      expect(report).toContain(`listens at ${url}`);
      expect(report).toMatch(/uses simulators on this machine/);
      expect(report).toMatch(/environment +production/);
      expect(report).toMatch(/authentication +mtls, with OAuth for customer tokens/);
      expect(report).toMatch(/baseUrl +https:\/\/127\.0\.0\.1:\d+/);
      expect(report).toMatch(/certificate +CN=application, O=.*valid until \d{4}-\d\d-\d\d \(36\d days\)/);
      expect(report).toMatch(/banks\.list +ok: 10 banks/);
      expect(report).toMatch(/customers\.create +ok: customer [\da-f-]{36}/);
      expect(report).toMatch(
        /sdk\.connectParameters +ok: app_token <token of \d+ characters>, access_token <token of \d+ characters>/,
      );
      expect(report).not.toMatch(/eyJ[\w-]+\.|BEGIN [A-Z ]+|app-[\w-]{24}/);
    });

    it('the sample prints a single line and exits if its port is in use', async () => {
      const other = start(SOURCE);
      expect((await other.exited).code).toBe(1);
      expect(other.output()).toMatch(
        new RegExp(
          `^Port ${port} is in use\\. Is the sample running already\\? Otherwise set PORT to a free port, in the environment or in \\.env\\.\\n$`,
        ),
      );
    });

    it('the printed curl lines work more than once and contain no customer id', async () => {
      const lines = [...sample.output().matchAll(/^ {2}(curl .+)$/gm)].map(([, line = '']) => line);
      const statuses: string[] = [];
      for (const line of [...lines, ...lines]) {
        const typed = `${line} --silent --show-error --output /dev/null --write-out '%{http_code}'`;
        statuses.push((await run('sh', ['-c', typed], { cwd: project.path })).stdout);
      }
      expect(statuses.slice(0, 4)).toEqual(['200', '201', '201', '200']);
      expect(statuses.slice(4)).toEqual(statuses.slice(0, 4));
      expect(lines.join()).not.toContain('customer_id');
    });

    it("a LinkSDK session belongs to the visitor's own customer, whatever customer_id the request names", async () => {
      const created = await post(`${url}/customers`, { app_user_id: 'u-2', is_admin: true });
      const customer = {
        customer_id: expect.any(String),
        app_user_id: 'u-2',
        created_at: expect.any(String),
      };
      expect(created).toMatchObject({ status: 201, body: customer });
      // The service accepts each user id only once, so the sample returns the existing customer.
      const again = await post(`${url}/customers`, { app_user_id: 'u-2' });
      expect(again).toMatchObject({ status: 201, body: created.body as object });
      const { cookie } = again;
      const { customer_id } = created.body as { customer_id: string };
      const wish = { permissions: ['identity'], bank_identifier: 'b-1' };
      const answer = await post(`${url}/link-session`, { ...wish, customer_id: 'c-1' }, { cookie });
      expect(answer).toMatchObject({ status: 201, cacheControl: 'no-store' });
      const tokens = { access_token: expect.any(String), app_token: expect.any(String) };
      expect(answer.body).toEqual({ ...wish, customer_id, ...tokens });
      for (const headers of [{}, { cookie: 'sample_session=guessed' }])
        expect(await post(`${url}/link-session`, wish, headers)).toMatchObject({ status: 401 });
    });

    it.each([
      ['without an Origin header', { origin: undefined }],
      ['from another website', { origin: 'https://other.example' }],
      ['from another port of this machine', { origin: 'http://127.0.0.1:1' }],
      ['with the Origin null', { origin: 'null' }],
      ['with an X-Forwarded-For header', { 'x-forwarded-for': '192.0.2.1' }],
      ['with a Via header', { via: '1.1 proxy' }],
    ])('a request %s gets 403, even with the cookie of a session', async (_name, headers) => {
      const { cookie } = await post(`${url}/customers`, { app_user_id: randomUUID() });
      const answer = await post(`${url}/link-session`, { permissions: ['identity'] }, { cookie, ...headers });
      expect(answer).toMatchObject({ status: 403, body: { statusCode: 403 } });
    });

    it('the sample serves its page and all files of the page, and forbids other pages to frame them', async () => {
      const page = await (await fetch(url)).text();
      const files = [...page.matchAll(/(?:src|href)="(\/[^"]*\.\w+)"/g)].map(([, file = '']) => file);
      expect(files).toEqual(['/icon.svg', '/page.css', '/link-sdk.js', '/page.js']);
      for (const path of ['/', '/docs', '/banks', ...files]) {
        const { status, headers } = await fetch(url + path);
        expect([status, headers.get('x-frame-options')]).toEqual([200, 'DENY']);
        expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      }
    });

    it('a request body that violates its DTO gets 400', async () => {
      expect(await post(`${url}/customers`, {})).toMatchObject({ status: 400, body: { statusCode: 400 } });
      const { cookie } = await post(`${url}/customers`, { app_user_id: randomUUID() });
      expect(await post(`${url}/link-session`, { permissions: [] }, { cookie })).toMatchObject({
        status: 400,
        body: { message: [expect.stringContaining('permissions')] },
      });
    });

    it('the route /health reports the status of the token, the ping and the certificate', async () => {
      const answer = await fetch(`${url}/health`);
      expect(answer.status).toBe(200);
      expect(await answer.json()).toEqual({
        status: 'ok',
        error: {},
        info: { service: expect.objectContaining({ status: 'up' }) },
        details: {
          service: {
            status: 'up',
            token: { ok: true },
            ping: { ok: true, checkedAt: expect.any(String) },
            certificate: { daysLeft: expect.any(Number), validTo: expect.any(String) },
          },
        },
      });
    });

    it('the OpenAPI document at /docs-json describes the routes and their bodies', async () => {
      const document = (await (await fetch(`${url}/docs-json`)).json()) as OpenAPIObject;
      expect(Object.keys(document.paths)).toEqual(['/banks', '/customers', '/link-session', '/health']);
      const { CreateCustomerDto, LinkSessionDto } = document.components?.schemas ?? {};
      expect(CreateCustomerDto).toMatchObject({
        required: ['app_user_id'],
        properties: { app_user_id: { example: 'user-42' } },
      });
      expect(LinkSessionDto).toMatchObject({
        properties: {
          permissions: { type: 'array', example: expect.any(Array) },
          bank_identifier: { example: expect.any(String) },
        },
      });
      expect(LinkSessionDto).not.toHaveProperty('properties.customer_id');
      expect(document.paths['/banks']?.get?.responses).toHaveProperty('503');
    });

    browserIt('the page /docs shows the four routes in a browser', async () => {
      const opened = await chromium.launch({
        executablePath: requireProgram(browser),
        args: ['--no-sandbox'],
      });
      const page = await opened.newPage();
      await page.goto(`${url}/docs`);
      for (const route of ['get /banks', 'post /customers', 'post /link-session', 'get /health']) {
        const [method, path] = route.split(' ');
        await page.locator(`.opblock-${method} [data-path="${path}"]`).waitFor();
      }
      await opened.close();
    });

    it('SIGTERM to npm ends all processes of the sample, even while a browser keeps an unused connection', async () => {
      const unused = await openConnection(port);
      sample.signal('SIGTERM');
      await sample.exited;
      expect(await sample.waitUntilGone()).toBe(true);
      expect(await isListening(port)).toBe(false);
      unused.destroy();
    });
  });

  inSoak(() => {
    it('the sample also starts with nest start', async () => {
      const port = await deadPort();
      const nest = join(project.path, 'node_modules/@nestjs/cli/bin/nest.js');
      const command = [process.execPath, nest, 'start', 'sample', '--no-shell'];
      const sample = start(command, { PORT: String(port) });
      await sample.waitForOutput(LAST_LINE);
      expect((await fetch(`http://127.0.0.1:${port}/banks`)).status).toBe(200);
      sample.signal('SIGINT', 'group');
      await sample.exited;
      expect(await sample.waitUntilGone()).toBe(true);
    }, 120_000);

    describe('with SERVICE_* variables', () => {
      let simulator: ServiceSimulator;

      beforeAll(async () => {
        simulator = await startSimulator();
      });
      afterEach(() => {
        simulator.clearFaults();
        simulator.clearRequests();
      });
      afterAll(() => simulator.stop());

      it('the sample calls the service of its SERVICE_* variables and ends all its processes on Ctrl-C', async () => {
        const port = await deadPort();
        const sample = start(SOURCE, {
          ...simulator.env({ environment: 'sandbox', authentication: 'oauth', clientCertificate: false }),
          PORT: String(port),
        });
        await sample.waitForOutput(LAST_LINE);
        expect(simulator.apiRequests.map(({ method, path, face }) => `${method} ${path} ${face}`)).toEqual([
          'GET /banks/v1 sandbox',
        ]);
        expect(sample.output()).toMatch(/customers\.create +not called/);
        expect(sample.output()).toMatch(/authentication +oauth\n +sandboxUrl/);
        expect(sample.output()).toMatch(/certificate +none/);
        for (const secret of [simulator.clientSecret, simulator.appToken]) {
          expect(sample.output()).not.toContain(secret);
        }
        // The page also shows calls to a real service, but not the credentials that arrived there.
        const call = await firstCallShown(`http://127.0.0.1:${port}/page/events`);
        expect(call).toMatchObject({ mode: 'sandbox, oauth', path: '/oauth2/token', status: '200' });
        expect(call).not.toHaveProperty('credentials');
        // Ctrl-C arrives three times: from the terminal, and passed on by npm and by the Nest CLI.
        for (let times = 0; times < 3; times++) sample.signal('SIGINT', 'group');
        await sample.exited;
        expect(await sample.waitUntilGone()).toBe(true);
        expect(await isListening(port)).toBe(false);
      }, 30_000);

      it('the sample starts without lib/testing, continues after failed calls, maps errors and ends by SIGTERM', async () => {
        const testing = join(project.path, 'lib/testing');
        await rename(testing, `${testing}-away`);
        const known = { status: 409, json: { status: 'EXISTS', message: 'Known' } };
        simulator.fail({ path: '/banks/v1', times: 1, fault: known });
        simulator.fail({ path: '/customers/v1', times: 1, fault: known });
        const port = await deadPort();
        const sample = start(SOURCE, { ...simulator.env({ environment: 'sandbox' }), PORT: String(port) });
        await sample.waitForOutput(LAST_LINE);
        expect(sample.output()).toMatch(
          /banks\.list +failed: api_error: GET \/banks\/v1: HTTP 409 EXISTS: Known/,
        );
        expect(sample.output()).not.toContain(simulator.appToken);

        const url = `http://127.0.0.1:${port}`;
        expect(await post(`${url}/customers`, { app_user_id: 'u-1' })).toMatchObject({
          status: 409,
          body: { code: 'api_error' },
        });
        simulator.fail({ path: '/banks/v1', times: Infinity, fault: { status: 500 } });
        simulator.clearRequests();
        const health = await Promise.all([fetch(`${url}/health`), fetch(`${url}/health`)]);
        expect(health.map(({ status }) => status)).toEqual([503, 503]);
        expect(await health[0]?.json()).toMatchObject({
          status: 'error',
          error: { service: { status: 'down', ping: { ok: false, code: 'api_error 500' } } },
        });
        // Both health requests share one call, without retries.
        expect(simulator.apiRequests).toHaveLength(1);
        expect((await fetch(`${url}/banks`)).status).toBe(502);

        sample.signal('SIGTERM');
        expect(await sample.exited).toEqual({ code: null, signal: 'SIGTERM' });
        expect(await isListening(port)).toBe(false);
        await rename(`${testing}-away`, testing);
      }, 30_000);

      it('the sample lists what is wrong with its configuration, without a stack trace', async () => {
        const sample = start(SOURCE, { SERVICE_ENVIRONMENT: 'production' });
        expect((await sample.exited).code).toBe(1);
        const [, ...lines] = sample.output().trimEnd().split('\n');
        expect(lines[0]).toMatch(/^The configuration of ServiceModule is not usable:$/);
        expect(lines.slice(1).join('\n')).toMatch(/SERVICE_APP_TOKEN[^]*SERVICE_BASE_URL/);
        for (const line of lines.slice(1)) expect(line).toMatch(/^ {2}- \S+ \(SERVICE_\w+\): /);
      }, 30_000);

      it('the sample rejects a PORT that is not a whole number', async () => {
        const sample = start(SOURCE, { ...simulator.env({ environment: 'sandbox' }), PORT: '30o0' });
        expect((await sample.exited).code).toBe(1);
        expect(sample.output()).toMatch(/^PORT must be a whole number.*\n$/);
      }, 30_000);
    });
  });
});

interface Answer {
  status: number;
  body: unknown;
  cacheControl: string | null;
  /** The cookie of the new session. */
  cookie: string;
}

/** Posts as a page of the sample's own origin does. */
async function post(
  url: string,
  body: unknown,
  headers: Record<string, string | undefined> = {},
): Promise<Answer> {
  const sent = { 'content-type': 'application/json', origin: new URL(url).origin, ...headers };
  const answer = await fetch(url, {
    method: 'POST',
    headers: Object.entries(sent).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    body: JSON.stringify(body),
  });
  const [cookie = ''] = answer.headers.get('set-cookie')?.split(';') ?? [];
  const cacheControl = answer.headers.get('cache-control');
  return { status: answer.status, body: await answer.json(), cacheControl, cookie };
}

/** Returns the data of the first event about a call. */
async function firstCallShown(url: string): Promise<unknown> {
  const events = await fetch(url);
  let text = '';
  for await (const chunk of events.body ?? []) {
    text += new TextDecoder().decode(chunk as Uint8Array);
    const [, data] = /event: call\n(?:id: \d+\n)?data: (.*)\n/.exec(text) ?? [];
    if (data !== undefined) return JSON.parse(data);
  }
  return undefined;
}

async function openConnection(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  return socket;
}
