import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Catch,
  ConflictException,
  Controller,
  type DynamicModule,
  type ExceptionFilter,
  Get,
  type INestApplication,
  type INestApplicationContext,
  Injectable,
  Logger,
  Module,
  type Provider,
  type Type,
  ValidationPipe,
} from '@nestjs/common';
import { APP_FILTER, BaseExceptionFilter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { context, metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { hrTimeToMilliseconds } from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { exec, execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { parseArgs, parseEnv, promisify } from 'node:util';
import {
  answerOf,
  BanksService,
  createServiceClient,
  type CustomersService,
  LinkSdkService,
  ServiceAuthService,
  type ServiceCallEvent,
  type ServiceClient,
  ServiceConfigurationError,
  type ServiceError,
  type ServiceErrorCode,
  ServiceExceptionFilter,
  ServiceHttpService,
  ServiceModule,
  type ServiceModuleOptions,
  ServiceWebhookGuard,
} from 'nestjs-service';
import {
  type IssuedCertificate,
  knownApiRoutes,
  serviceErrors,
  ServiceSimulator,
  ServiceStub,
  stubService,
} from 'nestjs-service/testing';
import { CALL_OPTIONS } from '../../lib/cli/call.js';
import { OPTIONS as DOCTOR_OPTIONS, run as runDoctor } from '../../lib/cli/doctor.js';
import { type DoctorReport } from '../../lib/cli/doctor/report.js';
import { readSimulatorOptions, SIMULATOR_HELP } from '../../lib/cli/simulator-options.js';
import { PATH_WORDS } from '../../lib/config/names.js';
import { OPTIONS } from '../../lib/config/options.js';
import { readVariables } from '../../lib/config/variables.js';
import * as errors from '../../lib/errors/index.js';
import { REFUSED } from '../../lib/http/call-options.js';
import { GUIDES } from '../../lib/version.js';
import { commandIo } from '../helpers/command-io.js';
import { deadPort } from '../helpers/loopback.js';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { readDocument, ROOT, type Snippets, writeSnippets } from '../helpers/readme.js';
import { startRedis } from '../helpers/redis.js';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { startSimulator } from '../helpers/simulators.js';
import { startSource } from '../helpers/source-process.js';
import { rejection, startModule } from '../helpers/start-module.js';
import { until } from '../helpers/until.js';

const GUIDE_NAMES = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md'));
const DOCUMENTS = ['README.md', ...GUIDE_NAMES.map((name) => `docs/${name}`)];
const documents = new Map(
  await Promise.all(DOCUMENTS.map(async (name) => [name, await readDocument(name)] as const)),
);
const snippets = new Map<string, Snippets>();
for (const [name, { fences }] of documents) {
  // recipes.spec.ts runs the snippets of the recipes.
  if (name === 'docs/recipes.md') continue;
  // A drain that a test can wait for.
  const blocks = fences.map((fence) => ({ ...fence, text: fence.text.replace('8_000', '1_500') }));
  snippets.set(name, await writeSnippets(blocks, { name: basename(name, '.md'), stubs: true }));
}
// The tests of a host that guides show are tests of this file.
for (const { files } of snippets.values()) {
  for (const file of files.filter((each) => each.endsWith('.spec.ts'))) await import(file);
}
const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
  repository: { url: string };
  scripts: object;
  peerDependencies: object;
  version: string;
};
const REPOSITORY = manifest.repository.url.replace(/^git\+|\.git$/g, '');
const openssl = findProgram('openssl');
const redisServer = findProgram('redis-server');

const textOf = (name: string) => documents.get(name)?.text ?? '';
const fencesOf = (name: string) => documents.get(name)?.fences ?? [];
/** What a TypeScript block of a document exports, by the name of its file. */
const load = async <T>(name: string, file: string): Promise<T> =>
  (await import(snippets.get(name)?.path(file) ?? '')) as T;
const withoutBlocks = (text: string) => text.replace(/^```[^]*?^```$/gm, '');

const variables = { ...process.env };
let simulator: ServiceSimulator;
let folder: string;

beforeAll(async () => {
  [simulator, folder] = await Promise.all([startSimulator(), mkdtemp(join(tmpdir(), 'documents-'))]);
});
beforeEach(() => simulator.clearRequests());
afterEach(() => {
  for (const key of Object.keys(process.env)) if (!(key in variables)) delete process.env[key];
});
afterAll(async () => {
  await simulator.stop();
  await rm(folder, { recursive: true });
  for (const each of snippets.values()) await each.remove();
});

/** Writes a PEM to a file and returns its path. */
async function fileOf(name: string, pem: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, pem.replaceAll('\\n', '\n'));
  return path;
}

describe('Links', () => {
  /** As GitHub makes them of headings. */
  const anchorsOf = (text: string): string[] =>
    [...withoutBlocks(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );

  /** Whether there is such a file, with such a heading. */
  const isThere = async (path: string, anchor?: string): Promise<boolean> =>
    existsSync(path) && (anchor === undefined || anchorsOf(await readFile(path, 'utf8')).includes(anchor));

  it('in the documents lead to a file, and to a heading of it', async () => {
    const broken: string[] = [];
    let links = 0;
    for (const document of [...DOCUMENTS, 'CONTRIBUTING.md', 'SECURITY.md']) {
      const path = join(ROOT, document);
      for (const [, target = ''] of withoutBlocks(await readFile(path, 'utf8')).matchAll(
        /\]\(((?!https?:)[^)\s]+)\)/g,
      )) {
        links += 1;
        const [file = '', anchor] = target.split('#');
        if (!(await isThere(file === '' ? path : join(dirname(path), file), anchor)))
          broken.push(`${document}: ${target}`);
      }
    }
    expect(broken).toEqual([]);
    expect(links).toBeGreaterThan(40);
  });

  it('in texts and comments of lib lead to a heading of a guide of this version', async () => {
    const files = await readdir(join(ROOT, 'lib'), { recursive: true });
    const broken: string[] = [];
    let named = 0;
    for (const file of files.filter((each) => each.endsWith('.ts'))) {
      const text = await readFile(join(ROOT, 'lib', file), 'utf8');
      for (const [target, guide = '', anchor] of text.matchAll(
        /(?:docs|\$\{GUIDES\})\/([\w-]+\.md)(?:#([\w-]+))?/g,
      )) {
        named += 1;
        if (!(await isThere(join(ROOT, 'docs', guide), anchor))) broken.push(`lib/${file}: ${target}`);
      }
    }
    expect(broken).toEqual([]);
    expect(named).toBeGreaterThan(40);
    expect(GUIDES).toBe(`${REPOSITORY}/blob/v${manifest.version}/docs`);
  });

  it('in the README lead to every guide', () => {
    const list = textOf('README.md').split('## Guides')[1] ?? '';
    const named = [...list.matchAll(/\]\(docs\/([\w-]+\.md)\)/g)].map(([, name = '']) => name);
    expect(named.sort()).toEqual([...GUIDE_NAMES].sort());
  });

  it('stand in place of what another guide says: no 14 words in a row are in two of them', () => {
    const found = new Map<string, string>();
    const repeated = new Set<string>();
    for (const [name, { text }] of documents) {
      const words = withoutBlocks(text)
        .replace(/\]\([^)]*\)/g, ']')
        .match(/[\w'`.]+/g);
      for (let at = 0; at + 14 <= (words?.length ?? 0); at += 1) {
        const run = words?.slice(at, at + 14).join(' ') ?? '';
        const first = found.get(run) ?? name;
        found.set(run, first);
        if (first !== name) repeated.add(`${first} and ${name}: ${run}`);
      }
    }
    expect([...repeated]).toEqual([]);
  });

  it('in CONTRIBUTING.md lead to existing files, folders and specs', async () => {
    const text = withoutBlocks(await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8'));
    const names = [...text.matchAll(/`([a-z][\w-]*\/(?:[\w.-]+\/?)*)`/g)].map(([, name = '']) => name);
    const specs = [...text.matchAll(/`([\w-]+\.spec\.ts)`/g)].map(([, name = '']) => name);
    const written = (await readdir(join(ROOT, 'test'), { recursive: true })).map((path) => basename(path));
    expect(names.length).toBeGreaterThan(3);
    const missing = names.filter((name) => ![join(ROOT, 'lib', name), join(ROOT, name)].some(existsSync));
    expect([...missing, ...specs.filter((name) => !written.includes(name))]).toEqual([]);
  });
});

describe('Names in the documents', () => {
  it.each([
    ['docs/configuration.md'],
    ['docs/certificates.md'],
    ['docs/proxies.md'],
    ['docs/env-files.md'],
    ['docs/modes.md'],
    ['docs/rotation.md'],
    ['docs/troubleshooting.md'],
    ['docs/migration.md'],
    ['docs/operation.md'],
    ['docs/webhooks.md'],
  ])('of variables exist: %s', (name) => {
    const asked = new Set<string>();
    readVariables((variable) => void asked.add(variable));
    const named = new Set(
      textOf(name)
        .replace(/SERVICE_[A-Z_]*\*/g, '')
        .match(/SERVICE_[A-Z_]+[A-Z]/g),
    );
    expect([...named].filter((variable) => !asked.has(variable))).toEqual([]);
    if (name === 'docs/configuration.md') expect(named.size).toBe(asked.size);
  });

  it('include every error class', () => {
    const classes = Object.keys(errors).filter((name) => /^Service\w+Error$/.test(name));
    const rows = [...textOf('docs/calls.md').matchAll(/^\| `(Service\w+Error)`/gm)].map(([, name]) => name);
    expect(rows.sort()).toEqual(classes.filter((name) => name !== 'ServiceError').sort());
  });

  it('include every error code, and whether its error is retryable', () => {
    const { connection, token, api } = serviceErrors;
    const said = (error: ServiceError) => (error.retryable ? /^yes/ : /^no$/);
    const atStart = /^no \(at start-up\)$/;
    const expected: Record<ServiceErrorCode, RegExp> = {
      api_error: /^with status 408, 425, 429, and from 500 on except 501 and 505$/,
      invalid_response: said(serviceErrors.invalidResponse()),
      connection_timeout: said(connection('timeout')),
      connection_reset: said(connection('reset')),
      connection_refused: said(connection('refused')),
      connection_dns: said(connection('dns')),
      connection_network: said(connection('network')),
      connection_proxy: /^depends on/,
      connection_closed: said(connection('closed')),
      connection_tls: said(connection('tls')),
      connection_protocol: said(connection('protocol')),
      connection_redirect: said(connection('redirect')),
      connection_too_large: said(connection('too_large')),
      token_unavailable: said(token('token_unavailable')),
      token_rate_limited: said(token('token_rate_limited')),
      client_secret_unavailable: said(token('client_secret_unavailable')),
      token_refused: said(token('token_refused')),
      invalid_token_response: said(token('invalid_token_response')),
      oauth_not_configured: said(token('oauth_not_configured')),
      certificate_refused: said(serviceErrors.certificate()),
      invalid_request: said(serviceErrors.request('id', 'is missing')),
      invalid_configuration: atStart,
      invalid_certificate: atStart,
      startup_check_failed: atStart,
    };
    const troubles = textOf('docs/troubleshooting.md').split('## By error code')[1]?.split('\n## ')[0] ?? '';
    const handled = [...troubles.matchAll(/^\| (`.*?) +\|/gm)].flatMap(
      ([, cell = '']) => cell.match(/\b[a-z]+_[a-z_]+/g) ?? [],
    );
    expect(new Set(handled)).toEqual(new Set(Object.keys(expected)));
    const codes = textOf('docs/calls.md').split('### Error codes')[1] ?? '';
    const rows = [...codes.matchAll(/^\| `([a-z]\w+)` +\| ([^`]*?) +\|/gm)];
    expect(Object.fromEntries(rows.map(([, code, retryable]) => [code, retryable]))).toEqual(
      Object.fromEntries(Object.entries(expected).map(([code, form]) => [code, expect.stringMatching(form)])),
    );
    const statuses = Array.from({ length: 200 }, (_, index) => 400 + index);
    const below = statuses.filter((status) => status < 500 && api(status).retryable).join(', ');
    const lasting = statuses.filter((status) => status >= 500 && !api(status).retryable).join(' and ');
    expect(`with status ${below}, and from 500 on except ${lasting}`).toMatch(expected.api_error);
  });

  it('include every time limit of the core, and no other', async () => {
    const lib = join(ROOT, 'lib');
    const files = (await readdir(lib, { recursive: true })).filter(
      (file) => file.endsWith('.ts') && !/^(testing|terminus|redis|cli|schematics)\//.test(file),
    );
    const declared = await Promise.all(
      files.map(async (file) => {
        const text = await readFile(join(lib, file), 'utf8');
        return [...text.matchAll(/^(?:export )?const ([A-Z_]+_(?:MS|S)) = /gm)].map(
          ([, name]) => `${file} ${name}`,
        );
      }),
    );
    const contributing = await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
    const [, table = ''] = contributing.split('### Time limits');
    const told = [...table.split('\n### ', 1)[0].matchAll(/^\| `([^`]+\.ts)` ([^|]*)/gm)].flatMap(
      ([, file, cell]) => [...cell.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => `${file} ${name}`),
    );
    expect(declared.flat().length).toBeGreaterThan(40);
    expect(told.sort()).toEqual(declared.flat().sort());
  });

  it('include every line of the log', async () => {
    const files = (await readdir(join(ROOT, 'lib'), { recursive: true })).filter(
      (file) => file.endsWith('.ts') && !/^(testing|cli|schematics)\//.test(file),
    );
    const texts = await Promise.all(files.map((file) => readFile(join(ROOT, 'lib', file), 'utf8')));
    const [, table = ''] = textOf('docs/troubleshooting.md').split('## What the log says');
    const rows = [...table.matchAll(/^\| (error|warn|log|debug) +\| `(.+?)` +\|/gm)].map(
      ([, level, line = '']) => ({
        level,
        parts: line.split('...').map((part) => part.trim()),
      }),
    );
    const unknown = rows
      .flatMap(({ parts }) => parts)
      .filter((part) => !texts.some((text) => text.includes(part)));
    expect(unknown).toEqual([]);
    // Their texts come from other places.
    const others = [/describeFault\(warning\)/, /parts\.join/, /: String\(error\)/];
    const written = texts.flatMap((text) => [
      ...text.matchAll(/\b(?:log|logger)\.(?:error|warn|log|debug)\(\s*([^]*?)\);\n/gi),
    ]);
    const missing = written
      .map(([line]) => line)
      .filter((line) => !others.some((other) => other.test(line)))
      .filter((line) => !rows.some(({ parts }) => parts.every((part) => line.includes(part))));
    expect(missing).toEqual([]);
  });

  it('include every option of axios that is refused', () => {
    const names = [...textOf('docs/interceptors.md').matchAll(/^\| (`.*?) +\|/gm)]
      .flatMap(([, cell = '']) => cell.split(', '))
      .map((name) => name.replaceAll('`', ''));
    // Refused by code of their own.
    const others = ['adapter', 'transitional.forcedJSONParsing'];
    expect(names.filter((name) => !others.includes(name)).sort()).toEqual([...REFUSED.keys()].sort());
  });

  it('include every word of a path that routes show', () => {
    const [, list = ''] = /The known words are ([^]*?)\.\n/.exec(textOf('docs/calls.md')) ?? [];
    const words = [...list.matchAll(/`([a-z-]+)`/g)].map(([, word = '']) => word);
    expect(words).toEqual([...PATH_WORDS]);
  });

  it('include the status with which the filter answers refused input and refused options', () => {
    const text = textOf('docs/exception-filter.md');
    const refused = serviceErrors.request('app_user_id', 'is missing');
    const { status } = answerOf(refused);
    expect(text).toMatch(new RegExp(`^\\| .*\\(\`ServiceRequestError\`\\) +\\| ${status}\\b`, 'm'));
    const [, name = '', usual] = /^- `(invalid\w+)` \((\d+)\)/m.exec(text) ?? [];
    expect([answerOf(refused, { [name]: 422 }).status, status]).toEqual([422, Number(usual)]);
  });

  it('include one command to install, a first call of at most 22 lines, and two commands for a clone of the repository', () => {
    const commands = fencesOf('README.md').filter(({ language }) => language === 'sh');
    expect(commands.map(({ text }) => text.trim())).toEqual([
      'npx nest add nestjs-service',
      'npm ci && npm start',
      'npm ci && npm test',
    ]);
    expect(Object.keys(manifest.scripts)).toEqual(expect.arrayContaining(['start', 'test']));
    expect(textOf('README.md')).toContain(`(${REPOSITORY})`);
    const [firstCall] = fencesOf('README.md');
    expect(firstCall?.file).toBe('app.module.ts');
    expect(firstCall?.text.trimEnd().split('\n').length).toBeLessThanOrEqual(22);
  });

  it('include a guard in every route that starts a session in the browser', () => {
    const routes = [...documents.values()]
      .flatMap(({ fences }) => fences)
      .filter(({ text }) => text.includes('@Controller(') && text.includes('.connectParameters('));
    expect(routes.length).toBeGreaterThan(0);
    expect(routes.filter(({ text }) => !text.includes('@UseGuards('))).toEqual([]);
  });

  describe('of the command', () => {
    const section = (name: string) =>
      textOf('docs/command.md').split(`\n## ${name}\n`)[1]?.split('\n## ')[0] ?? '';

    it('include each option of the doctor, in commands that it accepts, and each key of --json', async () => {
      const rows = /^\| option +\| what it does.*\n\|[-| ]+\n((?:\|.*\n)+)/m.exec(
        textOf('docs/command.md'),
      )?.[1];
      const named = [...(rows ?? '').matchAll(/^\| `--([\w-]+)/gm)].map(([, name]) => name);
      expect(named).toEqual(Object.keys(DOCTOR_OPTIONS).filter((name) => name !== 'help'));
      const lines = fencesOf('docs/command.md').filter(({ text }) => /^.* doctor\b/.test(text));
      expect(lines.length).toBeGreaterThan(1);
      for (const { text } of lines) {
        const args = text
          .trim()
          .split(/ doctor\b/)[1]
          ?.split(' ')
          .filter(Boolean);
        parseArgs({ args, options: DOCTOR_OPTIONS });
      }
      const { SERVICE_APP_TOKEN: _, ...values } = simulator.env();
      const io = commandIo(values);
      await runDoctor(['--json', '--offline'], io, { stepMs: 10_000, totalMs: 20_000 });
      const printed = JSON.parse(io.stdout()) as DoctorReport;
      const keysOf = (value: object) => Object.keys(value).join(', ');
      const failed = printed.checks.find(({ status }) => status === 'failed') ?? {};
      const [first, last] = keysOf(failed).split(/, (?=remedy)/);
      expect(textOf('docs/command.md')).toContain(`{ ${keysOf(printed)}: [{ ${first}, ${last}? }] }`);
    });

    it('include each option of the command call, in commands that it accepts', () => {
      const unnamed = Object.keys(CALL_OPTIONS).filter((name) => !section('Call').includes(`\`--${name}\``));
      expect(unnamed).toEqual(['help']);
      const lines = [
        ...section('Call').matchAll(/^npx nestjs-service call (\w+) (\S+)(?: --yes)?(?: --data '(.*)')?$/gm),
      ];
      expect(lines.map(([, method, path]) => `${method} ${path}`)).toEqual([
        'GET /banks/v1',
        'POST /customers/v1',
      ]);
      expect(JSON.parse(lines[1]?.[3] ?? '')).toEqual({ app_user_id: 'u-1' });
    });

    it('include each option and fault of the simulator, as its help does, and a valid compose file', async () => {
      const options = [...SIMULATOR_HELP.matchAll(/^ {2}(--(?!help)[a-z-]+(?: <[^\n]*?>\S*)?)(?: {2}|$)/gm)];
      expect(options).toHaveLength(10);
      const faults = /or one of:\n\s+([^.]+)\./.exec(SIMULATOR_HELP)?.[1]?.split(', ') ?? [];
      expect(faults).toHaveLength(7);
      const names = [...options.map(([, option = '']) => option), ...faults];
      expect(names.filter((each) => !section('Simulator').includes(`\`${each}\``))).toEqual([]);
      const [, args = ''] = /main\.js simulator (.+)$/m.exec(textOf('docs/command.md')) ?? [];
      expect(await readSimulatorOptions(args.split(' '), '/app')).toMatchObject({
        host: '0.0.0.0',
        serverNames: ['simulator'],
        folder: '/simulator',
        ports: { baseUrl: 8443 },
      });
    });
  });

  it('of nestjs-service/testing include every error, every member of the stub, and methods of the simulator', () => {
    const text = textOf('docs/testing.md');
    const members = ['calls', 'callsOf', 'use', 'reset'];
    expect(Object.getOwnPropertyNames(ServiceStub.prototype)).toEqual(expect.arrayContaining(members));
    const names = [
      ...Object.keys(serviceErrors).map((name) => `\`${name}(`),
      ...['`calls`', '`callsOf(', '`use(', '`reset('],
    ];
    expect(names.filter((name) => !text.includes(name))).toEqual([]);
    const section = withoutBlocks(textOf('docs/simulator.md'));
    const named = [...section.matchAll(/`(\w+)\(/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(12);
    const methods = Object.getOwnPropertyNames(ServiceSimulator.prototype);
    const others = named.filter((name) => !methods.includes(name));
    expect(new Set(others)).toEqual(new Set(['useValue', knownApiRoutes.name]));
  });
});

describe('README.md', () => {
  const name = 'README.md';

  it('has an application that runs with its four variables, and an error as the log of that application shows it', async () => {
    const fence = (language: string) => fencesOf(name).find((each) => each.language === language)?.text ?? '';
    const named = [...fence('dotenv').matchAll(/^(SERVICE_\w+)=(\S*)/gm)];
    expect(named.map(([, variable, value]) => [variable, value]).slice(0, 2)).toEqual([
      ['SERVICE_ENVIRONMENT', 'sandbox'],
      ['SERVICE_AUTHENTICATION', 'app-token'],
    ]);
    const values = simulator.env({ environment: 'sandbox', authentication: 'app-token' });
    const given = Object.fromEntries(named.map(([, variable = '']) => [variable, values[variable]]));
    const [, message = '', hint = ''] = /^ServiceApiError: (.+)\n(.+?) \.\.\.$/m.exec(fence('text')) ?? [];
    expect([message, hint]).not.toContain('');
    const run = async (status: number, env: Record<string, string>) => {
      const port = await deadPort();
      const { SERVICE_TLS_CHAIN } = values;
      const application = startSource(snippets.get(name)?.path('main.ts') ?? '', {
        cwd: folder,
        env: { ...given, SERVICE_TLS_CHAIN, PORT: String(port), ...env },
      });
      try {
        await application.waitForPort(port);
        expect((await fetch(`http://127.0.0.1:${port}/banks`)).status).toBe(status);
        return application.output();
      } finally {
        await application.kill();
      }
    };
    const [, log] = await Promise.all([run(200, {}), run(502, { SERVICE_APP_TOKEN: 'wrong' })]);
    expect(log).toContain(message);
    expect(log).toContain(hint);
  });
});

describe('docs/getting-started.md', () => {
  const name = 'docs/getting-started.md';

  it('has an application that runs without changes, and ends by a signal', async () => {
    const port = await deadPort();
    const application = startSource(snippets.get(name)?.path('src/main.ts') ?? '', {
      cwd: folder,
      env: {
        ...simulator.env({ environment: 'production', authentication: 'mtls', oauth: true }),
        PORT: String(port),
      },
    });
    try {
      await application.waitForPort(port);
      const url = `http://127.0.0.1:${port}`;
      const post = (path: string, body: object) =>
        fetch(url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      expect((await fetch(`${url}/banks`)).status).toBe(200);
      expect((await post('/customers', { app_user_id: 'u-1' })).status).toBe(201);
      expect((await post('/customers', {})).status).toBe(400);
      expect(await (await fetch(url)).text()).toBe('Hello World!');
      application.signal('SIGTERM');
      expect(await application.exited).toEqual({ code: null, signal: 'SIGTERM' });
    } finally {
      await application.kill();
    }
  });

  it.each<[string, () => Promise<Type>]>([
    ['its root module', async () => (await load<{ AppModule: Type }>(name, 'src/app.module.ts')).AppModule],
    [
      'a module that exports ServiceModule, without isGlobal',
      async () => {
        @Module({ imports: [ServiceModule.forRoot()], exports: [ServiceModule] })
        class SharedModule {}
        return SharedModule;
      },
    ],
  ])('has a module that gives one client to every module: %s', async (_, rootModule) => {
    const root = await rootModule();
    @Injectable()
    class Feature {
      constructor(readonly banks: BanksService) {}
    }
    @Module({ imports: [root], providers: [Feature] })
    class FeatureModule {}
    const builder = Test.createTestingModule({ imports: [root, FeatureModule] });
    stubService(builder);
    const module = await builder.compile();
    expect(module.get(Feature, { strict: false }).banks).toBe(module.get(BanksService, { strict: false }));
    await module.close();
  });

  it('has variables for a start that only looks at the application', async () => {
    const { text = '' } = fencesOf(name).find((fence) => fence.text.includes('service.invalid')) ?? {};
    for (const line of text.trim().split('\n'))
      Object.assign(process.env, Object.fromEntries([line.split('=', 2)]));
    const { module } = await startModule({});
    expect(module.get(BanksService)).toBeDefined();
    await module.close();
  });
});

describe('docs/modes.md', () => {
  const name = 'docs/modes.md';

  it('has a .env for each of the five modes, with all it takes', async () => {
    const blocks = fencesOf(name).filter(({ language }) => language === 'dotenv');
    const modes: string[] = [];
    for (const { text } of blocks) {
      const lines = text.trim().split('\n');
      const given = Object.fromEntries(lines.map((line) => line.split('=', 2) as [string, string]));
      const { SERVICE_ENVIRONMENT: environment, SERVICE_AUTHENTICATION: authentication } = given;
      modes.push(`${environment}/${authentication}`);
      const real = simulator.moduleOptions({ environment, authentication } as never);
      const values = simulator.env({ environment, authentication } as never);
      for (const variable of Object.keys(given)) {
        const value = values[variable.replace(/_FILE$/, '')];
        expect([variable, typeof value]).toEqual([variable, 'string']);
        given[variable] = variable.endsWith('_FILE') ? await fileOf(variable, value) : value;
      }
      // The simulator's certificate is of no public root: a host of the real service may do without the chain.
      const options: ServiceModuleOptions =
        authentication === 'mtls' ? {} : { tls: { chain: real.tls.chain } };
      Object.assign(process.env, given);
      const { module, banks } = await startModule(options);
      expect(await banks.list()).toBeDefined();
      await module.close();
      for (const variable of Object.keys(given)) delete process.env[variable];
    }
    expect(modes).toEqual([
      'sandbox/app-token',
      'sandbox/mtls',
      'sandbox/oauth',
      'production/mtls',
      'production/oauth',
    ]);
  });
});

describe('docs/configuration.md', () => {
  const name = 'docs/configuration.md';

  it('has a namespace that is read', async () => {
    const { config } = await load<{ config(): Promise<DynamicModule> }>(name, 'namespace.ts');
    const { environment: _, ...options } = simulator.moduleOptions({ environment: 'production' });
    process.env.SERVICE_ENVIRONMENT = 'sandbox';
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(options), config()],
    }).compile();
    module.useLogger(false);
    await module.init();
    await module.get(BanksService).list();
    expect(simulator.requests.at(-1)?.face).toBe('base');
    await module.close();
  });

  it('has options from a vault, and a second service, that work', async () => {
    const { fromVault } = await load<{
      fromVault(vault: { read(name: string): Promise<string> }): DynamicModule;
    }>(name, 'options.ts');
    const { tls, oauth, appToken } = simulator.moduleOptions({
      environment: 'production',
      authentication: 'mtls',
      oauth: true,
    });
    const vault: Record<string, string | undefined> = {
      'app-token': appToken,
      'client-secret': oauth?.clientSecret,
      certificate: tls.certificate,
      'private-key': tls.privateKey,
      chain: tls.chain,
    };
    const { SERVICE_ENVIRONMENT, SERVICE_BASE_URL, SERVICE_AUTH_URL } = simulator.env();
    Object.assign(process.env, {
      SERVICE_ENVIRONMENT,
      SERVICE_BASE_URL,
      SERVICE_AUTH_URL,
      SERVICE_CLIENT_ID: simulator.clientId,
      ...simulator.env({ environment: 'sandbox', name: 'ksa' }),
    });
    const module = await Test.createTestingModule({
      imports: [
        fromVault({ read: async (secret) => vault[secret] ?? '' }),
        ServiceModule.forRoot({ name: 'ksa', isGlobal: true }),
      ],
    }).compile();
    await module.get(BanksService).list();
    await module.get(LinkSdkService).connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
    await module.get<BanksService>('nestjs-service:ksa:BanksService').list();
    expect(simulator.requests.map(({ face }) => face)).toEqual(['base', 'token', 'sandbox']);
    await module.close();
  });
});

describe('docs/calls.md', () => {
  const name = 'docs/calls.md';

  it('says which status callers get for a path whose ids are missing', async () => {
    const client = await createServiceClient(simulator.moduleOptions());
    const path = '/accounts/v1/{id}';
    const statusOf = async (pathParams?: object) =>
      answerOf(await rejection(client.http.get(path, { pathParams: pathParams as { id: string } })))?.status;
    for (const id of [undefined, null, '']) expect(await statusOf({ id })).toBe(400);
    expect(await statusOf(undefined)).toBe(500);
    expect(await statusOf({ id: '1', other: '2' })).toBe(500);
    expect(simulator.apiRequests).toEqual([]);
    await client.close();
  });

  it('begins with a call whose errors are told apart', async () => {
    const { register } = await load<{
      register(customers: CustomersService, userId: string): Promise<string>;
    }>(name, 'register.ts');
    expect(textOf(name).indexOf('// register.ts')).toBeLessThan(20);
    const { module, customers } = await startModule({ ...simulator.moduleOptions(), http: { retries: 0 } });
    const outcomes = [];
    for (const fault of [undefined, { status: 409 }, 'reset' as const, 'empty' as const]) {
      if (fault) simulator.fail({ path: '/customers/v1', fault });
      outcomes.push(await register(customers, 'u-2'));
    }
    const perhaps = 'perhaps registered';
    expect(outcomes).toEqual(['registered', 'registered before', perhaps, perhaps]);
    simulator.fail({ path: '/customers/v1', fault: { status: 400 } });
    await expect(register(customers, 'u-2')).rejects.toMatchObject({ status: 400 });
    await module.close();
  });

  it('has answers that are checked and typed, and what came with them', async () => {
    const { BankPage } = await load<{
      BankPage: Type<{ names(): Promise<string[]>; first(): Promise<object> }>;
    }>(name, 'bank-page.ts');
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(simulator.moduleOptions({ authentication: 'oauth' }))],
      providers: [BankPage],
    }).compile();
    const page = module.get(BankPage);
    expect(await page.names()).toContain('Alpha Bank');
    const json = [{ bank_identifier: 'b-1', name: 'One' }];
    const headers = { 'x-total-count': '7', 'x-correlation-id': 'c-1' };
    simulator.fail({ path: '/banks/v1', fault: { status: 200, json, headers } });
    expect(await page.first()).toEqual({ count: 1, total: 7, correlationId: 'c-1' });
    simulator.fail({ path: '/banks/v1', fault: { status: 200, json: [{ name: 'no id' }] } });
    await expect(page.names()).rejects.toMatchObject({
      code: 'invalid_response',
      message: expect.stringContaining('[0].bank_identifier'),
    });
    await module.close();
  });

  it('sends a body as it was signed', async () => {
    const { sendSigned } = await load<{
      sendSigned: (
        http: ServiceHttpService,
        body: object,
        sign: (text: string) => string,
      ) => Promise<unknown>;
    }>(name, 'signed-body.ts');
    const { module, http } = await startModule(simulator.moduleOptions());
    simulator.answer('POST', '/orders/v1', { json: {} });
    await sendSigned(http, { amount: 1 }, (text) => `of ${text}`);
    const [{ headers, body }] = simulator.apiRequests;
    expect([headers['x-signature'], headers['content-type']]).toEqual([`of ${body}`, 'application/json']);
    await module.close();
  });
});

describe('docs/exception-filter.md', () => {
  const name = 'docs/exception-filter.md';

  @Controller()
  class BanksController {
    constructor(private readonly banks: BanksService) {}
    @Get()
    list() {
      return this.banks.list();
    }
    @Get('taken')
    taken() {
      throw new ConflictException('of the host');
    }
    @Get('broken')
    broken() {
      throw new TypeError('secret of the host');
    }
  }

  it("shows front ends the error code and the named fields of the service's body", async () => {
    const { frontEndErrors } = await load<{ frontEndErrors: ExceptionFilter }>(name, 'front-end-errors.ts');
    const builder = Test.createTestingModule({
      imports: [ServiceModule.forRoot()],
      controllers: [BanksController],
      providers: [{ provide: APP_FILTER, useValue: frontEndErrors }],
    });
    const data = { status: 'CONSENT_EXPIRED', message: 'Ask again', status_detail: 'By the bank' };
    const error = serviceErrors.api(403, { ...data, data });
    stubService(builder, { banks: { list: () => Promise.reject(error) } });
    const app = (await builder.compile()).createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    expect(await (await fetch(await app.getUrl())).json()).toEqual({
      statusCode: 403,
      message: 'Ask again',
      code: 'api_error',
      serviceStatus: 'CONSENT_EXPIRED',
      fields: { status_detail: 'By the bank' },
    });
    await app.close();
  });

  it('names the order of filters in which ours answers its errors', async () => {
    expect(textOf(name)).toContain(
      'app.useGlobalFilters(new EveryErrorFilter(adapter), new ServiceExceptionFilter())',
    );
    @Catch()
    class EveryErrorFilter extends BaseExceptionFilter {}
    const statusWith = async (
      filters: (everyError: ExceptionFilter) => ExceptionFilter[],
      providers: Provider[] = [],
    ) => {
      const builder = Test.createTestingModule({
        imports: [ServiceModule.forRoot()],
        controllers: [BanksController],
        providers,
      });
      stubService(builder, { banks: { list: () => Promise.reject(serviceErrors.api(409)) } });
      const app = (await builder.compile()).createNestApplication({ logger: false });
      app.useGlobalFilters(...filters(new EveryErrorFilter(app.getHttpAdapter())));
      await app.listen(0, '127.0.0.1');
      const { status } = await fetch(await app.getUrl());
      await app.close();
      return status;
    };
    expect(await statusWith((everyError) => [everyError, new ServiceExceptionFilter()])).toBe(409);
    expect(await statusWith((everyError) => [new ServiceExceptionFilter(), everyError])).toBe(500);
    const provided = [{ provide: APP_FILTER, useClass: ServiceExceptionFilter }];
    expect(await statusWith((everyError) => [everyError], provided)).toBe(500);
  });

  it.each([
    ['Express', () => new ExpressAdapter()],
    ['Fastify', () => new FastifyAdapter()],
  ])('has a filter with answers of its own, for every error, on %s', async (_, adapter) => {
    const { ProblemFilter } = await load<{ ProblemFilter: Type<ExceptionFilter> }>(name, 'problem.filter.ts');
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...simulator.moduleOptions(), http: { retries: 0 } })],
      controllers: [BanksController],
      providers: [{ provide: APP_FILTER, useClass: ProblemFilter }],
    }).compile();
    const logger = new CollectingLogger();
    const app = module.createNestApplication(adapter(), { logger });
    await app.listen(0, '127.0.0.1');
    const ask = async (path = '') => {
      const response = await fetch(`${await app.getUrl()}/${path}`);
      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      return [response.status, await response.json(), response.headers.get('retry-after')];
    };
    const json = { status: 'NOT_THIS_ONE', message: 'said by the service' };
    simulator.fail({ path: '/banks/v1', fault: { status: 422, json } });
    const refused = { title: 'said by the service', status: 422, serviceStatus: 'NOT_THIS_ONE' };
    expect(await ask()).toEqual([422, refused, null]);
    expect(logger.lines.filter((line) => String(line).includes('api_error'))).toEqual([]);
    simulator.fail({ path: '/banks/v1', fault: { status: 429, headers: { 'retry-after': '7' } } });
    expect(await ask()).toEqual([503, { title: 'The service is busy at the moment.', status: 503 }, '7']);
    expect(logger.lines).toContainEqual(expect.stringMatching(/^ServiceApiError: .*\n.*nothing to correct/));
    expect(await ask('taken')).toEqual([409, { title: 'of the host', status: 409 }, null]);
    expect(await ask('broken')).toEqual([500, { title: 'Internal server error', status: 500 }, null]);
    await app.close();
  });
});

describe('docs/upgrading.md', () => {
  it('names the packages of each NestJS as the package requires them', () => {
    const [header, , ...rows] = textOf('docs/upgrading.md').match(/^\|.*/gm) ?? [];
    const cellsOf = (row = '') =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim());
    const [, ...names] = cellsOf(header);
    const versions = rows.map((row) => cellsOf(row).slice(1));
    const ranges = names.map((_, column) => versions.map((row) => `^${row[column]}.0.0`).join(' || '));
    const required = names.map((package_) => (manifest.peerDependencies as Record<string, string>)[package_]);
    expect(names.length).toBe(3);
    expect(ranges).toEqual(required);
  });
});

describe('docs/rotation.md', () => {
  it('has two webhook secrets in a .env, both of which are accepted', async () => {
    const text = fencesOf('docs/rotation.md').find(({ language }) => language === 'dotenv')?.text ?? '';
    const { SERVICE_WEBHOOK_SECRET: secret = '' } = parseEnv(text);
    const client = await createServiceClient({ ...simulator.moduleOptions(), webhook: { secret } });
    const signatures = secret
      .split('\n')
      .map((each) => createHmac('sha512', each).update('{}').digest('hex'));
    expect(signatures).toHaveLength(2);
    for (const signature of signatures)
      expect(await client.webhooks.verify('{}', `sha512=${signature}`)).toBe(true);
    await client.close();
  });
});

describe('docs/retries.md', () => {
  const name = 'docs/retries.md';

  it('says how often a GET is sent in the worst case: with a reconnect, another token, another certificate and all retries', async () => {
    const [, byDefault, withTen] = /\*\*in all\*\* +\| (\d+) +\| (\d+)/.exec(textOf(name)) ?? [];
    const certificates = [await simulator.issueCertificate(), await simulator.issueCertificate()];
    const tls = async () => {
      const { certificate, privateKey } = certificates[simulator.apiRequests.length > 1 ? 1 : 0];
      return { certificate, privateKey, chain: simulator.chain };
    };
    const options = simulator.moduleOptions({ authentication: 'oauth', clientCertificate: true });
    const { module, http } = await startModule({ ...options, tls });
    // The next request reuses the connection of this one.
    await http.get('/banks/v1');
    const path = '/orders/v1/1';
    const headers = { 'content-type': 'text/html' };
    const page = { status: 400, headers, body: '<html><h1>The SSL certificate error</h1></html>' };
    for (const fault of ['reset', { status: 401 }, page] as const) simulator.fail({ path, fault });
    simulator.fail({ path, times: Infinity, fault: { status: 429 } });
    expect(await rejection(http.get(path))).toMatchObject({ status: 429 });
    const sent = simulator.apiRequests.slice(1).map(({ status }) => status);
    expect(sent).toEqual([undefined, 401, 400, 429, 429, 429]);
    expect([Number(byDefault), Number(withTen)]).toEqual([sent.length, sent.length + 8]);
    simulator.clearFaults();
    await module.close();
  });

  it('transfer.ts tells a payment that failed from one that may have been made', async () => {
    const { transfer } = await load<{
      transfer: (http: ServiceHttpService, order: object) => Promise<string>;
    }>(name, 'transfer.ts');
    const { module, http } = await startModule(simulator.moduleOptions());
    simulator.answer('POST', '/payments/v1', { json: { id: 'p-1' } });
    expect(await transfer(http, {})).toBe('done');
    simulator.fail({ path: '/payments/v1', fault: { status: 409 } });
    expect(await transfer(http, {})).toBe('failed');
    simulator.fail({ path: '/payments/v1', fault: 'reset' });
    expect(await transfer(http, {})).toBe('unknown');
    expect(simulator.apiRequests).toHaveLength(3);
    await module.close();
  });

  it('pay.ts sends a payment with its key again until its outcome is known', async () => {
    const { pay } = await load<{
      pay: (http: ServiceHttpService, orderId: string, payment: object) => Promise<string>;
    }>(name, 'pay.ts');
    const { module, http } = await startModule(simulator.moduleOptions());
    simulator.answer('POST', '/payments/v1', { json: { id: 'p-1' } });
    simulator.fail({ path: '/payments/v1', times: 4, fault: 'reset' });
    expect(await pay(http, 'order-7', {})).toBe('pending');
    expect(await pay(http, 'order-7', {})).toBe('p-1');
    simulator.fail({ path: '/payments/v1', fault: 'empty' });
    expect(await pay(http, 'order-7', {})).toBe('pending');
    const keys = simulator.apiRequests.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual(Array(6).fill('order-7'));
    simulator.fail({ path: '/payments/v1', fault: { status: 422 } });
    await expect(pay(http, 'order-8', {})).rejects.toMatchObject({ status: 422 });
    await module.close();
  });
});

describe('docs/interceptors.md', () => {
  it('signs the address that is sent, and logs the route', async () => {
    const { SignedCalls } = await load<{ SignedCalls: Type<object> }>(
      'docs/interceptors.md',
      'signed-calls.ts',
    );
    const logger = new CollectingLogger();
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(simulator.moduleOptions())],
      providers: [SignedCalls],
    })
      .setLogger(logger)
      .compile();
    process.env.SIGNING_KEY = 'k-1';
    simulator.answer('GET', '/accounts/v1/{id}', { json: {} });
    const pathParams = { id: 'a/b' };
    await module.get(ServiceHttpService).get('/accounts/v1/{id}', { pathParams, params: { page: 0 } });
    const [{ path, headers }] = simulator.apiRequests;
    const text = `get ${path} ${String(headers['x-nonce'])}`;
    expect(path).toBe('/accounts/v1/a%2Fb?page=0');
    expect(headers['x-signature']).toBe(createHmac('sha256', 'k-1').update(text).digest('hex'));
    expect(logger.lines).toContain('get /accounts/v1/{id}: 200');
    await module.close();
  });

  it('signs the body that is sent, whether the caller passes an object or a string', async () => {
    const { SignedBodies } = await load<{ SignedBodies: Type<object> }>(
      'docs/interceptors.md',
      'signed-bodies.ts',
    );
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(simulator.moduleOptions())],
      providers: [SignedBodies],
    }).compile();
    process.env.SIGNING_KEY = 'k-1';
    simulator.answer('POST', '/orders/v1', { json: {} });
    const http = module.get(ServiceHttpService);
    await http.post('/orders/v1', { name: 'Zoë' });
    await http.post('/orders/v1', '{ "a":  1 }');
    await http.get('/banks/v1');
    const sent = simulator.apiRequests.map(({ body, headers }) => [
      String(body),
      headers['content-type'],
      headers['x-body-signature'],
    ]);
    const sign = (text: string) => createHmac('sha256', 'k-1').update(text).digest('hex');
    expect(sent).toEqual([
      ['{"name":"Zoë"}', 'application/json', sign('{"name":"Zoë"}')],
      ['{ "a":  1 }', 'application/json', sign('{ "a":  1 }')],
      ['', undefined, undefined],
    ]);
    await module.close();
  });
});

describe('docs/tokens.md', () => {
  const name = 'docs/tokens.md';

  it.each([
    ['no pipe', []],
    ['a ValidationPipe', [new ValidationPipe({ whitelist: true })]],
  ])('has an endpoint for the customer of the signed-in user alone, with %s', async (_name, pipes) => {
    const { LinkSessionController } = await load<{ LinkSessionController: Type }>(
      name,
      'link-session.controller.ts',
    );
    const options = simulator.moduleOptions({ environment: 'sandbox', authentication: 'oauth' });
    @Module({ controllers: [LinkSessionController] })
    class SessionsModule {}
    const testing = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...options, isGlobal: true }), SessionsModule],
    }).compile();
    const app = testing.createNestApplication({ logger: false });
    app.useGlobalPipes(...pipes);
    app.useGlobalFilters(new ServiceExceptionFilter());
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/link-session`;
    const post = (headers: Record<string, string>, body: unknown) =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const session = { authorization: 'Bearer session-of-user-42' };
    const wish = { permissions: ['identity'], customer_id: 'somebody-else' };
    expect((await post({}, wish)).status).toBe(403);
    const response = await post(session, wish);
    expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const { access_token, ...rest } = (await response.json()) as { access_token: string };
    expect(rest).toEqual({
      app_token: expect.any(String),
      customer_id: 'customer-42',
      sandbox: true,
      permissions: ['identity'],
    });
    expect(simulator.issuedFor(access_token)).toMatchObject({ scope: 'customer.customer-42' });
    expect((await post(session, { permissions: [] })).status).toBe(400);
    expect((await post(session, undefined)).status).toBe(400);
    await app.close();
  });

  it('has a client without Nest', async () => {
    const { banksOf } = await load<{ banksOf(options: ServiceModuleOptions): Promise<unknown> }>(
      name,
      'without-nest.ts',
    );
    expect(await banksOf(simulator.moduleOptions({ environment: 'sandbox' }))).toHaveLength(10);
    await expect(banksOf({})).rejects.toBeInstanceOf(ServiceConfigurationError);
    await until(() => simulator.openConnections === 0);
  });
});

describe('docs/webhooks.md', () => {
  const name = 'docs/webhooks.md';
  const BODY = '{ "type":  "entity.created" }';
  const wrong = { 'service-signature': `sha512=${'0'.repeat(128)}` };
  const send = async (...webhook: Parameters<ServiceSimulator['sendWebhook']>): Promise<number> =>
    (await simulator.sendWebhook(...webhook)).status;

  it.each([
    ['Express', 'webhook-main.ts', 'createApplication', 'text/plain', 1_048_576],
    ['Fastify', 'webhook-fastify.ts', 'createFastifyApplication', 'application/xml', 2_000_000],
  ])('has a guarded route, another content type and a limit, on %s', async (_, file, made, type, limit) => {
    type Queue = { events: unknown[] };
    const { WebhookController } = await load<{ WebhookController: Type }>(name, 'webhook.controller.ts');
    const { WebhookQueue } = await load<{ WebhookQueue: Type<Queue> }>(name, 'webhook-queue.ts');
    const { [made]: create } = await load<Record<string, (of: Type) => Promise<INestApplication>>>(
      name,
      file,
    );
    @Module({
      imports: [ServiceModule.forRoot(simulator.moduleOptions())],
      controllers: [WebhookController],
      providers: [WebhookQueue],
    })
    class AppModule {}
    Logger.overrideLogger(false);
    const app = await create(AppModule);
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/webhook`;
    expect(await send(url, BODY)).toBe(200);
    expect(await send(url, 'x'.repeat(limit), { 'content-type': type })).toBe(200);
    expect(await send(url, BODY, wrong)).toBe(401);
    expect(await send(url, 'x'.repeat(limit + 1), { 'content-type': type })).toBe(413);
    const { events } = app.get<Queue>(WebhookQueue);
    expect([events.length, events[0]]).toEqual([2, { type: 'entity.created' }]);
    await app.close();
  });

  it('has a guard of a named module', async () => {
    const { KsaWebhookGuard } = await load<{ KsaWebhookGuard: Type }>(name, 'ksa-webhook.guard.ts');
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ ...simulator.moduleOptions(), name: 'ksa' })],
      providers: [KsaWebhookGuard],
    }).compile();
    expect(module.get(KsaWebhookGuard)).toBeInstanceOf(ServiceWebhookGuard);
    await module.close();
  });

  it('has a function for a signature over a time and the body, which refuses an old one', async () => {
    const { isGenuine } = await load<{
      isGenuine: (body: Buffer, headers: Record<string, string>, secret: string) => boolean;
    }>(name, 'timestamped-webhook.ts');
    const isAccepted = (timestamp: string, signed = `${timestamp}.${BODY}`) => {
      const signature = `sha256=${createHmac('sha256', 's3cret').update(signed).digest('hex')}`;
      const headers = { 'webhook-timestamp': timestamp, 'webhook-signature': signature };
      return isGenuine(Buffer.from(BODY), headers, 's3cret');
    };
    const now = Math.floor(Date.now() / 1000);
    expect(isAccepted(String(now))).toBe(true);
    expect(isAccepted(String(now), BODY)).toBe(false);
    expect(isAccepted(String(now - 301))).toBe(false);
    expect(isGenuine(Buffer.from(BODY), {}, 's3cret')).toBe(false);
  });

  it('has a route of Express, and a handler of fetch, without Nest', async () => {
    const { addWebhook } = await load<{
      addWebhook(app: unknown, client: ServiceClient, store: (event: unknown) => Promise<void>): void;
    }>(name, 'express-webhook.ts');
    const library = 'express';
    const express = (await import(library)) as { default: () => HttpApplication };
    interface HttpApplication {
      use(handler: unknown): void;
      listen(port: number, host: string): Server;
    }
    const client = await createServiceClient(simulator.moduleOptions());
    const app = express.default();
    const events: unknown[] = [];
    addWebhook(app, client, async (event) => void events.push(event));
    const failures: unknown[] = [];
    app.use((error: unknown, _request: unknown, response: ServerResponse, _next: unknown) => {
      failures.push(error);
      response.writeHead(500).end();
    });
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhook`;
    expect(await send(url, BODY)).toBe(200);
    expect(await send(url, BODY, wrong)).toBe(401);
    expect((await fetch(url, { method: 'POST', headers: { connection: 'close' } })).status).toBe(401);
    expect([events, failures]).toEqual([[{ type: 'entity.created' }], []]);
    expect(await send(url, 'no JSON')).toBe(500);
    expect(failures).toEqual([expect.any(SyntaxError)]);
    server.close();
    await client.close();

    const { receive } = await load<{ receive: (...of: [Request, string[]]) => Promise<Response> }>(
      name,
      'fetch-webhook.ts',
    );
    const digest = createHmac('sha512', 'new').update(BODY).digest('hex');
    for (const [signature, status] of [
      [`sha512=${digest}`, 200],
      [`sha512=${digest.toUpperCase()}`, 200],
      [digest, 401],
      [undefined, 401],
    ] as const) {
      const headers = new Headers(signature === undefined ? {} : { 'service-signature': signature });
      const request = new Request('http://host.example', { method: 'POST', body: BODY, headers });
      expect((await receive(request, ['new', 'old'])).status).toBe(status);
    }
  });
});

describe('docs/certificates.md', () => {
  const name = 'docs/certificates.md';
  let application: INestApplicationContext | undefined;
  let next: IssuedCertificate;

  beforeAll(async () => {
    next = await simulator.issueCertificate({ commonName: 'next' });
  });
  afterEach(async () => {
    await application?.close();
    application = undefined;
  });

  const subjects = () => simulator.requests.map(({ certificateSubject }) => certificateSubject);

  /** All but the identity itself, from variables. */
  function setVariables(): Record<string, string> {
    const values = simulator.env({ environment: 'production', authentication: 'mtls' });
    const others = Object.entries(values).filter(([variable]) => !variable.startsWith('SERVICE_TLS_'));
    Object.assign(process.env, Object.fromEntries(others));
    return values;
  }

  async function start(module: Type | DynamicModule) {
    await application?.close();
    application = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
    return application;
  }

  it('has a set-up with AWS Secrets Manager that works, and follows it', async () => {
    setVariables();
    const stub = join(snippets.get(name)?.stub('@aws-sdk/client-secrets-manager') ?? '', 'index.js');
    const { SecretsManagerClient } = (await import(stub)) as {
      SecretsManagerClient: { secrets: Map<string, string> };
    };
    const publish = ({ certificate, privateKey }: IssuedCertificate) =>
      SecretsManagerClient.secrets.set(
        'service/tls',
        JSON.stringify({ certificate, privateKey, chain: simulator.chain }),
      );
    publish(simulator.application);
    const app = await start((await load<{ AwsModule: Type }>(name, 'aws.module.ts')).AwsModule);
    await app.get(BanksService, { strict: false }).list();
    publish(next);
    await app.get(ServiceAuthService, { strict: false }).reloadCertificate();
    await app.get(BanksService, { strict: false }).list();
    expect(subjects()).toEqual([simulator.application.subject, next.subject]);
  });

  itWith(openssl, 'the conversion of a .p12')(
    'has commands that convert a .p12, and with -legacy one of old',
    async () => {
      const run = (command: string) =>
        promisify(exec)(command.replaceAll('openssl', requireProgram(openssl)), { cwd: folder });
      const block = fencesOf(name).find(({ text }) => text.includes('app.p12'))?.text ?? '';
      const commands = block.trim().split('\n');
      expect(commands).toHaveLength(5);
      const convert = async (option: string) => {
        for (const command of commands)
          await run(command.startsWith('openssl') ? `${command} ${option} -passin pass:old` : command);
      };
      await fileOf('both.pem', next.certificate + next.privateKey);
      await fileOf('authorities.pem', simulator.chain);
      for (const option of ['', '-legacy']) {
        await run(
          `openssl pkcs12 -export -in both.pem -certfile authorities.pem -out app.p12 -passout pass:old ${option}`,
        );
        if (option) await expect(convert('')).rejects.toThrow(/unsupported/);
        await convert(option);
        setVariables();
        const tls = {
          certificate: { file: join(folder, 'tls.crt') },
          privateKey: { file: join(folder, 'tls.key') },
          chain: simulator.chain,
        };
        await (await start(ServiceModule.forRoot({ tls }))).get(BanksService).list();
        expect(subjects().at(-1)).toBe(next.subject);
      }
    },
  );

  it('has variables with files, for an agent, that work; and so has the Deployment of docs/operation.md', async () => {
    const blocks = [...fencesOf(name), ...fencesOf('docs/operation.md')].filter(({ text }) =>
      text.includes('SERVICE_TLS_CERTIFICATE_FILE'),
    );
    expect(blocks.map(({ language }) => language)).toEqual(['dotenv', 'yaml']);
    for (const { text } of blocks) {
      const values = setVariables();
      const names = [...text.matchAll(/(SERVICE_[A-Z_]+)_FILE(?:=|, value: )\//g)].map(
        ([, variable = '']) => variable,
      );
      expect(names).toEqual(expect.arrayContaining(['SERVICE_TLS_PRIVATE_KEY', 'SERVICE_TLS_CHAIN']));
      for (const variable of names) {
        delete process.env[variable];
        process.env[`${variable}_FILE`] = await fileOf(variable, values[variable]);
      }
      const app = await start({ module: class Host {}, imports: [ServiceModule.forRoot()] });
      await app.get(BanksService, { strict: false }).list();
      for (const variable of names) delete process.env[`${variable}_FILE`];
    }
    expect(subjects()).toEqual([simulator.application.subject, simulator.application.subject]);
  });
});

describe('docs/service.md', () => {
  it('has a command that tests mutual TLS, and creates no customer', async () => {
    const command = fencesOf('docs/service.md').find(({ language }) => language === 'sh')?.text ?? '';
    const { certificate, privateKey } = simulator.application;
    await fileOf('tls.crt', certificate);
    await fileOf('tls.key', privateKey);
    await fileOf('chain.pem', simulator.chain);
    const { SERVICE_APP_TOKEN, SERVICE_BASE_URL } = simulator.env();
    const before = simulator.customers.length;
    const { stdout } = await promisify(execFile)('sh', ['-c', command], {
      cwd: folder,
      env: { PATH: process.env.PATH, SERVICE_APP_TOKEN, SERVICE_BASE_URL },
    });
    expect(JSON.parse(stdout)).toMatchObject({ status: expect.any(String), message: expect.any(String) });
    const certificateSubject = simulator.application.subject;
    expect(simulator.apiRequests).toMatchObject([
      { face: 'base', method: 'POST', path: '/customers/v1', status: 400, certificateSubject },
    ]);
    expect(simulator.customers).toHaveLength(before);
  });
});

describe('docs/fleet.md', () => {
  itWith(redisServer, 'the set-up of docs/fleet.md')(
    'has a set-up whose processes share tokens',
    async () => {
      const redis = await startRedis(requireProgram(redisServer));
      Object.assign(process.env, { ...simulator.env({ authentication: 'oauth' }), REDIS_URL: redis.url });
      try {
        const { AppModule } = await load<{ AppModule: Type }>('docs/fleet.md', 'fleet.module.ts');
        for (let count = 0; count < 2; count++) {
          const host = { module: class Host {}, imports: [AppModule] };
          const app = await NestFactory.createApplicationContext(host, {
            logger: false,
            abortOnError: false,
          });
          await app.get(BanksService, { strict: false }).list();
          await app.close();
        }
        // The second one took the token of the first.
        expect([simulator.apiRequests.length, simulator.tokenRequests.length]).toEqual([2, 1]);
      } finally {
        await redis.kill();
      }
    },
  );
});

describe('docs/migration.md', () => {
  it('has a client before and after that bring the same', async () => {
    interface BankClient {
      banks(): Promise<unknown>;
    }
    /** @param imports the imports of the root module */
    const clientOf = async (path: string, imports: DynamicModule[] = []) => {
      const { BankClient, BankClientModule } = (await import(path)) as {
        BankClient: Type<BankClient>;
        BankClientModule: Type;
      };
      const module = await Test.createTestingModule({ imports: [...imports, BankClientModule] }).compile();
      return { module, client: module.get(BankClient) };
    };
    const mode = { environment: 'production', authentication: 'oauth', clientCertificate: true } as const;
    const values = simulator.env(mode);
    const written = (variable: string) => fileOf(variable, values[variable]);
    Object.assign(process.env, values, {
      SERVICE_OAUTH_MTLS: /`SERVICE_OAUTH_MTLS=(true)`/.exec(textOf('docs/migration.md'))?.[1],
      API_URL: values.SERVICE_BASE_URL,
      AUTH_URL: values.SERVICE_AUTH_URL,
      CLIENT_ID: values.SERVICE_CLIENT_ID,
      CLIENT_SECRET: values.SERVICE_CLIENT_SECRET,
      CERT_FILE: await written('SERVICE_TLS_CERTIFICATE'),
      KEY_FILE: await written('SERVICE_TLS_PRIVATE_KEY'),
      CHAIN_FILE: await written('SERVICE_TLS_CHAIN'),
    });
    const old = await clientOf('../helpers/hand-written-client.js');
    const migrated = await clientOf(snippets.get('docs/migration.md')?.path('migrated.module.ts') ?? '', [
      ServiceModule.forRoot({ isGlobal: true }),
    ]);
    expect(await migrated.client.banks()).toEqual(await old.client.banks());

    const [{ certificateSubject }] = simulator.apiRequests;
    expect(certificateSubject).toBeDefined();
    const shown = simulator.tokenRequests.map((request) => request.certificateSubject);
    expect(shown).toEqual([certificateSubject, certificateSubject]);

    const http = migrated.module.get(ServiceHttpService, { strict: false });
    const { status, headers } = await http.response('/banks/v1');
    expect([status, headers['content-type']]).toEqual([200, expect.stringContaining('json')]);

    const json = { error_code: 'LIMIT', errors: [{ field: 'page' }] };
    const limited = { status: 422, json, headers: { 'x-limit': '5' } };
    simulator.fail({ path: '/banks/v1', times: 2, fault: limited });
    const response = { status: 422, data: json, headers: { 'x-limit': '5' } };
    await expect(old.client.banks()).rejects.toMatchObject({ response });
    await expect(migrated.client.banks()).rejects.toMatchObject({ response });

    simulator.fail({ path: '/banks/v1', fault: { status: 503 } });
    await expect(old.client.banks()).rejects.toMatchObject({ response: { status: 503 } });
    simulator.fail({ path: '/banks/v1', fault: { status: 503 } });
    expect(await migrated.client.banks()).toHaveLength(10);
    await Promise.all([old.module.close(), migrated.module.close()]);
  });
});

describe('docs/operation.md', () => {
  const name = 'docs/operation.md';
  const deployment = fencesOf(name).find(({ language }) => language === 'yaml')?.text ?? '';
  const numberOf = (key: string, source = textOf(name)) =>
    Number(new RegExp(`${key}\\D+([\\d_]+)`).exec(source)?.[1]?.replace('_', ''));

  it('has a route for readiness that answers 503 from SIGTERM on, while calls are served', async () => {
    const { HealthModule } = await load<{ HealthModule: Type }>(name, 'health.module.ts');
    @Controller('banks')
    class BanksController {
      constructor(private readonly banks: BanksService) {}
      @Get()
      list() {
        return this.banks.list();
      }
    }
    Object.assign(process.env, simulator.env({ environment: 'production', authentication: 'mtls' }));
    process.env.SERVICE_HTTP_SHUTDOWN_TIMEOUT = String(numberOf('SHUTDOWN_TIMEOUT', deployment));
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot({ isGlobal: true }), HealthModule],
      controllers: [BanksController],
    }).compile();
    const app: INestApplication = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    const path = /path: ([\w/]+)/.exec(deployment.split('readinessProbe')[1])?.[1] ?? '';
    const ready = async () => (await fetch(url + path)).status;
    expect(await ready()).toBe(200);
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    const closed = (app.close as (signal: string) => Promise<void>).call(app, 'SIGTERM');
    // Nest's hooks run one after the other, in steps of the event loop.
    while ((await ready()) === 200);
    expect(await ready()).toBe(503);
    expect((await fetch(`${url}/banks`)).status).toBe(200);
    await closed;
    await expect(fetch(`${url}/banks`)).rejects.toThrow();
  });

  it('has a second route for alarms, and stays in rotation while the service fails and a certificate ends soon', async () => {
    const { HealthModule } = await load<{ HealthModule: Type }>(name, 'health.module.ts');
    const DAY_MS = 86_400_000;
    const statusesWith = async (days: number, fault?: { status: number }) => {
      const certificate = await simulator.issueCertificate({
        notAfter: new Date(Date.now() + days * DAY_MS),
      });
      const options = simulator.moduleOptions({ certificate });
      if (fault) simulator.fail({ path: '/banks/v1', times: Infinity, fault });
      const module = await Test.createTestingModule({
        imports: [ServiceModule.forRoot({ ...options, isGlobal: true }), HealthModule],
      }).compile();
      const app: INestApplication = module.createNestApplication({ logger: false });
      await app.listen(0, '127.0.0.1');
      const responses = ['ready', 'service'].map(async (path) =>
        fetch(`${await app.getUrl()}/health/${path}`),
      );
      const [ready, service] = await Promise.all(responses);
      const { details } = (await service.json()) as { details: object };
      app.getHttpServer().closeAllConnections();
      await app.close();
      simulator.clearFaults();
      return { statuses: [ready.status, service.status], details };
    };
    const up = { status: 'up', certificate: { daysLeft: expect.any(Number) }, ping: { ok: true } };
    expect(await statusesWith(9)).toMatchObject({ statuses: [200, 200], details: { service: up } });
    const down = { status: 'down', message: expect.stringContaining('expires in 5 days') };
    expect(await statusesWith(6)).toMatchObject({ statuses: [200, 503], details: { service: down } });
    const failing = { status: 'down', ping: { ok: false } };
    const failed = await statusesWith(9, { status: 503 });
    expect(failed).toMatchObject({ statuses: [200, 503], details: { service: failing } });
  });

  it('has a Deployment whose times fit, and whose variables there are', () => {
    const drainMs = numberOf('gracefulShutdownTimeoutMs');
    const callsMs = numberOf('SHUTDOWN_TIMEOUT', deployment);
    expect(drainMs).toBeGreaterThan(0);
    expect(callsMs).toBeGreaterThan(drainMs);
    // One after the other, and then the connections that callers keep.
    const graceMs = 1_000 * numberOf('terminationGracePeriodSeconds', deployment);
    expect(graceMs).toBeGreaterThan(drainMs + callsMs + 5_000);
    const known = OPTIONS.flatMap(({ suffix }) =>
      suffix ? [`SERVICE_${suffix}`, `SERVICE_${suffix}_FILE`] : [],
    );
    const named = deployment.match(/SERVICE_\w+/g) ?? [];
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((variable) => !known.includes(variable))).toEqual([]);
  });

  it('makes a metric and a span of each call and token request, below the active span, without a secret', async () => {
    const spans = new InMemorySpanExporter();
    const points = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter: points, exportIntervalMillis: 3_600_000 });
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(
      new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
    );
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
    const { onCall } = await load<{ onCall: (event: ServiceCallEvent) => void }>(name, 'call-telemetry.ts');
    const options = simulator.moduleOptions({ authentication: 'oauth' });
    const api = await startModule({ ...options, http: { ...options.http, onCall } });
    const parent = trace.getTracer('host').startSpan('host');
    const begunAt = Date.now();
    await context.with(trace.setSpan(context.active(), parent), async () => {
      await api.banks.list({ params: { q: 'private' } });
      simulator.fail({ path: /orders/, fault: { status: 404 } });
      await rejection(api.http.get('/orders/v1/private'));
    });
    const made = spans.getFinishedSpans();
    const { spanId } = parent.spanContext();
    expect(made.map((span) => [span.name, span.status.code, span.parentSpanContext])).toEqual(
      [
        ['POST /oauth2/token', SpanStatusCode.UNSET],
        ['GET /banks/v1', SpanStatusCode.UNSET],
        ['GET /orders/v1/{}', SpanStatusCode.ERROR],
      ].map((each) => [...each, expect.objectContaining({ spanId })]),
    );
    for (const { startTime, duration, kind } of made) {
      expect(kind).toBe(SpanKind.CLIENT);
      expect(hrTimeToMilliseconds(startTime)).toBeGreaterThanOrEqual(begunAt - 1);
      expect(hrTimeToMilliseconds(duration)).toBeGreaterThan(0);
      expect(hrTimeToMilliseconds(startTime) + hrTimeToMilliseconds(duration)).toBeLessThan(Date.now() + 1);
    }
    const attempts = made.map(({ events }) =>
      events.map((event) => [event.name, event.attributes?.connection]),
    );
    expect(attempts).toEqual([[['attempt', 'new']], [['attempt', 'new']], [['attempt', 'reused']]]);
    await reader.forceFlush();
    const [{ scopeMetrics }] = points.getMetrics();
    const counted = scopeMetrics[0].metrics[0].dataPoints.map(({ attributes }) => attributes);
    expect(counted).toEqual([
      { route: '/oauth2/token', status: 200, error: undefined },
      { route: '/banks/v1', status: 200, error: undefined },
      { route: '/orders/v1/{}', status: 404, error: 'api_error' },
    ]);
    const told = JSON.stringify(made.map((span) => [span.name, span.attributes]));
    for (const secret of [simulator.clientSecret, (await api.auth.getApiToken()).accessToken, 'private'])
      expect(told).not.toContain(secret);
    for (const each of [context, trace, metrics]) each.disable();
    await reader.shutdown();
    await api.module.close();
  });
});
