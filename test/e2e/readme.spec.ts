import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type DynamicModule, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BanksService,
  LinkSdkService,
  type ServiceAuthService,
  ServiceModule,
  type ServiceModuleOptions,
  type TokenStore,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readVariables } from '../../lib/config/variables.js';
import { compileSnippets } from '../helpers/compile-snippets.js';
import { deadPort } from '../helpers/loopback.js';
import { programOf, readReadme, typeProblems, writeSnippets } from '../helpers/readme.js';
import { startProcess } from '../helpers/sample-process.js';
import { startModule } from '../helpers/start-module.js';

const before = { ...process.env };
const readme = await readReadme();
const snippets = await writeSnippets(readme.fences);
const program = programOf(snippets);
// Its tests of a host are tests of this file.
for (const file of ['app.controller.spec.ts', 'app.module.spec.ts', 'banks.spec.ts']) {
  await import(snippets.path(file));
}

afterEach(() => {
  for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
});

describe('README', () => {
  let simulator: ServiceSimulator;
  let folder: string;

  beforeAll(async () => {
    [simulator, folder] = await Promise.all([ServiceSimulator.start(), mkdtemp(join(tmpdir(), 'readme-'))]);
  });
  afterAll(async () => {
    await simulator.stop();
    await snippets.remove();
    await rm(folder, { recursive: true });
  });

  const load = async <T>(file: string): Promise<T> => (await import(snippets.path(file))) as T;

  it('has TypeScript that compiles', () => {
    expect(typeProblems(snippets, program)).toEqual([]);
    expect(snippets.files.length).toBeGreaterThanOrEqual(6);
  }, 30_000);

  it('has an application that runs without changes, and ends by a signal', async () => {
    const compiled = await compileSnippets(snippets, program);
    const port = await deadPort();
    const application = startProcess([process.execPath, compiled.path('main.ts')], {
      cwd: compiled.folder,
      env: {
        ...simulator.env({ environment: 'production', authentication: 'mtls', oauth: true }),
        PORT: String(port),
      },
    });
    try {
      await application.listens(port);
      const url = `http://127.0.0.1:${port}`;
      const post = (path: string, body: object) =>
        fetch(url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
      expect((await fetch(`${url}/banks`)).status).toBe(200);
      expect((await fetch(`${url}/echo`)).status).toBe(200);
      expect((await post('/customers', { app_user_id: 'u-1' })).status).toBe(201);
      expect((await post('/customers', {})).status).toBe(400);
      const session = await post('/link-session', { customer_id: 'c-1', permissions: ['identity'] });
      expect(await session.json()).toEqual({
        access_token: expect.any(String),
        customer_id: 'c-1',
        permissions: ['identity'],
      });
      application.signal('SIGTERM');
      expect(await application.exited).toEqual({ code: null, signal: 'SIGTERM' });
    } finally {
      await application.kill();
      await compiled.remove();
    }
  }, 60_000);

  it('has another client that uses the identity and the tokens', async () => {
    const { statusOf } = await load<{ statusOf(url: string, auth: ServiceAuthService): Promise<number> }>(
      'other-client.ts',
    );
    const { module, auth } = await startModule(simulator.moduleOptions({ environment: 'production' }));
    expect(await statusOf(`${simulator.urls.baseUrl}/banks/v1`, auth)).toBe(200);
    await module.close();
  });

  it('has the configuration injected into a host', async () => {
    const { WhereTo, WhereToModule } = await load<{
      WhereTo: Type<{ environment: string }>;
      WhereToModule: Type;
    }>('where-to.ts');
    process.env.SERVICE_ENVIRONMENT = 'production';
    const module = await Test.createTestingModule({ imports: [WhereToModule] }).compile();
    expect(module.get(WhereTo).environment).toBe('production');
  });

  it('has options from a vault, and a second service, that work', async () => {
    const { fromVault, second } = await load<{
      fromVault(vault: { read(name: string): Promise<string> }): DynamicModule;
      second(): DynamicModule;
    }>('options.ts');
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
    });
    Object.assign(process.env, simulator.env({ environment: 'sandbox', name: 'ksa' }));
    const module = await Test.createTestingModule({
      imports: [fromVault({ read: async (name) => vault[name] ?? '' }), second()],
    }).compile();
    simulator.clearRequests();
    await module.get(BanksService).list();
    await module.get(LinkSdkService).connectParameters({ customer_id: 'c-1', permissions: ['identity'] });
    await module.get<BanksService>('nestjs-service:ksa:BanksService').list();
    expect(simulator.requests.map(({ face }) => face)).toEqual(['base', 'token', 'sandbox']);
    await module.close();
  });

  it('has answers that are checked and typed', async () => {
    const { BankNames } = await load<{ BankNames: Type<{ list(): Promise<string[]> }> }>('bank-names.ts');
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(simulator.moduleOptions({ authentication: 'oauth' }))],
      providers: [BankNames],
    }).compile();
    expect(await module.get(BankNames).list()).toContain('Alpha Bank');
    simulator.fail({ path: '/banks/v1', fault: { status: 200, json: [{ name: 'Alpha Bank' }] } });
    await expect(module.get(BankNames).list()).rejects.toMatchObject({
      code: 'invalid_response',
      message: expect.stringContaining('[0].bank_identifier'),
    });
    await module.close();
  });

  it('has a token store that two modules share', async () => {
    const { MemoryTokenStore } = await load<{ MemoryTokenStore: new () => TokenStore }>('token-store.ts');
    const options = {
      ...simulator.moduleOptions({ authentication: 'oauth' }),
      tokenStore: new MemoryTokenStore(),
    };
    const both = await Promise.all([startModule(options), startModule(options)]);
    simulator.clearRequests();
    const tokens = await Promise.all(both.map(({ auth }) => auth.getApiToken()));
    expect(new Set(tokens.map(({ accessToken }) => accessToken)).size).toBe(1);
    expect(simulator.tokenRequests).toHaveLength(1);
    await Promise.all(both.map(({ module }) => module.close()));
  });

  it('has a .env for each of the five modes, with all it takes', async () => {
    const blocks = readme.fences.filter(({ language }) => language === 'dotenv');
    const modes: string[] = [];
    for (const { text } of blocks) {
      const lines = text
        .trim()
        .split('\n')
        .map((line) => line.split('=', 2) as [string, string]);
      const variables = Object.fromEntries(lines);
      const { SERVICE_ENVIRONMENT: environment, SERVICE_AUTHENTICATION: authentication } = variables;
      modes.push(`${environment}/${authentication}`);
      const real = simulator.moduleOptions({ environment, authentication } as never);
      const values = simulator.env({ environment, authentication } as never);
      for (const name of Object.keys(variables)) {
        const isFile = name.endsWith('_FILE');
        const value = values[isFile ? name.slice(0, -'_FILE'.length) : name];
        expect([name, typeof value]).toEqual([name, 'string']);
        variables[name] = isFile ? await fileOf(name, value) : value;
      }
      // The simulator's certificate is of no public root: a host of the real service may do without the chain.
      const options: ServiceModuleOptions =
        authentication === 'mtls' ? {} : { tls: { chain: real.tls.chain } };
      Object.assign(process.env, variables);
      const module = await Test.createTestingModule({ imports: [ServiceModule.forRoot(options)] }).compile();
      expect(await module.get(BanksService).list()).toBeDefined();
      await module.close();
      for (const name of Object.keys(variables)) delete process.env[name];
    }
    expect(modes).toEqual([
      'sandbox/app-token',
      'sandbox/mtls',
      'sandbox/oauth',
      'production/mtls',
      'production/oauth',
    ]);
  });

  it('names every option and variable there is, and no other', () => {
    const asked = new Set<string>();
    readVariables((variable) => void asked.add(variable));
    const documented = new Set(readme.text.replace(/SERVICE_[A-Z_]*\*/g, '').match(/SERVICE_[A-Z_]+[A-Z]/g));
    expect([...documented].sort()).toEqual([...asked].sort());
  });

  it('begins with two commands that package.json has', async () => {
    const commands = readme.fences.filter(({ language }) => language === 'sh').map(({ text }) => text.trim());
    expect(commands.slice(0, 2)).toEqual(['npm ci && npm start', 'npm ci && npm test']);
    const { scripts } = JSON.parse(
      await readFile(join(import.meta.dirname, '../../package.json'), 'utf8'),
    ) as { scripts: object };
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['start', 'test']));
  });

  async function fileOf(name: string, value: string): Promise<string> {
    const path = join(folder, name);
    await writeFile(path, value.replaceAll('\\n', '\n'));
    return path;
  }
});
