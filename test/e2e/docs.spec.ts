import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type DynamicModule, type INestApplicationContext, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { BanksService, ServiceAuthService, ServiceModule, type TokenStore } from 'nestjs-service';
import { ServiceSimulator, type IssuedCertificate } from 'nestjs-service/testing';
import { readVariables } from '../../lib/config/variables.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';
import { startRedis } from '../helpers/redis.js';
import { startModule } from '../helpers/start-module.js';
import { readDocument, writeSnippets, type Fence, type Snippets } from '../helpers/readme.js';

const ROOT = join(import.meta.dirname, '../..');

describe('docs/fleet.md', () => {
  const program = findPeer('redis-server');
  const redisIt = itWith(program, 'the set-ups of docs/fleet.md');
  let snippets: Snippets;

  beforeAll(async () => {
    snippets = await writeSnippets((await readDocument('docs/fleet.md')).fences, { name: 'fleet' });
  });
  afterAll(() => snippets.remove());

  redisIt('has set-ups that share tokens', async () => {
    const redis = await startRedis(requirePeer(program));
    const simulator = await ServiceSimulator.start();
    const variables = { ...simulator.env({ authentication: 'oauth' }), REDIS_URL: redis.url };
    Object.assign(process.env, variables);
    try {
      for (const name of ['fleet', 'own-client']) {
        const loaded = (await import(snippets.path(`${name}.module.ts`))) as Record<string, Type>;
        const app = await NestFactory.createApplicationContext(Object.values(loaded)[0], {
          logger: false,
          abortOnError: false,
        });
        await app.get(BanksService, { strict: false }).list();
        await app.close();
      }
      // The second one took the token of the first.
      expect(simulator.apiRequests).toHaveLength(2);
      expect(simulator.tokenRequests).toHaveLength(1);
    } finally {
      for (const name of Object.keys(variables)) delete process.env[name];
      await simulator.stop();
      await redis.kill();
    }
  });

  it('has another store, that two modules share', async () => {
    const { MemoryTokenStore } = (await import(snippets.path('token-store.ts'))) as {
      MemoryTokenStore: new () => TokenStore;
    };
    const simulator = await ServiceSimulator.start();
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
    await simulator.stop();
  });
});

describe('docs/certificates.md', () => {
  let simulator: ServiceSimulator;
  let document: { text: string; fences: Fence[] };
  let snippets: Snippets;
  let folder: string;
  let application: INestApplicationContext | undefined;
  let next: IssuedCertificate;
  const before = { ...process.env };

  beforeAll(async () => {
    [simulator, document, folder] = await Promise.all([
      ServiceSimulator.start(),
      readDocument('docs/certificates.md'),
      mkdtemp(join(tmpdir(), 'docs-')),
    ]);
    next = await simulator.issueCertificate({ commonName: 'next' });
    snippets = await writeSnippets(document.fences, { name: 'certificates', stubs: true });
  });
  afterEach(async () => {
    await application?.close();
    application = undefined;
    for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
    simulator.clearRequests();
  });
  afterAll(async () => {
    await simulator.stop();
    await snippets.remove();
    await rm(folder, { recursive: true });
  });

  const pems = ({ certificate, privateKey }: IssuedCertificate) => ({
    certificate,
    privateKey,
    chain: simulator.chain,
  });
  const subjects = () => simulator.requests.map(({ certificateSubject }) => certificateSubject);

  /** All but the identity itself, from variables. */
  function setVariables(): Record<string, string> {
    const variables = simulator.env({ environment: 'production', authentication: 'mtls' });
    const others = Object.entries(variables).filter(([name]) => !name.startsWith('SERVICE_TLS_'));
    Object.assign(process.env, Object.fromEntries(others));
    return variables;
  }

  async function start(module: Type | DynamicModule) {
    application = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
    return application;
  }

  it('has the files that are tested here', () => {
    expect(snippets.files.map((file) => basename(file))).toEqual([
      'aws.module.ts',
      'vault.module.ts',
      'rotation-listener.ts',
    ]);
  });

  it('has a set-up with AWS Secrets Manager that works, and follows it', async () => {
    setVariables();
    const { SecretsManagerClient } = (await import(
      join(snippets.stub('@aws-sdk/client-secrets-manager'), 'index.js')
    )) as { SecretsManagerClient: { secrets: Map<string, string> } };
    SecretsManagerClient.secrets.set('service/tls', JSON.stringify(pems(simulator.application)));
    const { AwsModule } = (await import(snippets.path('aws.module.ts'))) as { AwsModule: Type };
    const app = await start(AwsModule);
    await app.get(BanksService, { strict: false }).list();
    SecretsManagerClient.secrets.set('service/tls', JSON.stringify(pems(next)));
    await app.get(ServiceAuthService, { strict: false }).reloadCertificate();
    await app.get(BanksService, { strict: false }).list();
    expect(subjects()).toEqual([simulator.application.subject, next.subject]);
  });

  it('has a set-up with HashiCorp Vault that works, and a listener that reloads', async () => {
    setVariables();
    Object.assign(process.env, { VAULT_ADDR: 'https://vault', VAULT_ROLE_ID: 'role', VAULT_SECRET_ID: 'id' });
    const { default: vault } = (await import(join(snippets.stub('node-vault'), 'index.cjs'))) as {
      default: { entries: Map<string, object> };
    };
    vault.entries.set('kv/data/service', pems(simulator.application));
    const { VaultModule } = (await import(snippets.path('vault.module.ts'))) as { VaultModule: Type };
    const { RotationListener } = (await import(snippets.path('rotation-listener.ts'))) as {
      RotationListener: new (auth: ServiceAuthService) => {
        onModuleInit(): void;
        onApplicationShutdown(): void;
      };
    };
    const app = await start(VaultModule);
    const auth = app.get(ServiceAuthService, { strict: false });
    const banks = app.get(BanksService, { strict: false });
    await banks.list();
    const listeners = process.listenerCount('SIGHUP');
    const listener = new RotationListener(auth);
    listener.onModuleInit();
    vault.entries.set('kv/data/service', pems(next));
    process.emit('SIGHUP');
    // Shares the reading that the signal began, or finds it done.
    await auth.reloadCertificate();
    listener.onApplicationShutdown();
    expect(process.listenerCount('SIGHUP')).toBe(listeners);
    await banks.list();
    expect(subjects()).toEqual([simulator.application.subject, next.subject]);
  });

  it('has variables with files, for an agent, that work; and so has the compose file of docs/recipes.md', async () => {
    const recipes = await readDocument('docs/recipes.md');
    const blocks = [...document.fences, ...recipes.fences].filter(({ text }) =>
      text.includes('SERVICE_TLS_CERTIFICATE_FILE'),
    );
    expect(blocks.map(({ language }) => language)).toEqual(['dotenv', 'yaml']);
    for (const { text } of blocks) {
      const values = setVariables();
      const names = [...text.matchAll(/^\s*(SERVICE_[A-Z_]+)_FILE(?:=|: )\//gm)].map(([, name = '']) => name);
      expect(names).toEqual(expect.arrayContaining(['SERVICE_TLS_PRIVATE_KEY', 'SERVICE_TLS_CHAIN']));
      for (const name of names) {
        const path = join(folder, name);
        await writeFile(path, values[name].replaceAll('\\n', '\n'));
        delete process.env[name];
        process.env[`${name}_FILE`] = path;
      }
      const app = await start({ module: class Host {}, imports: [ServiceModule.forRoot()] });
      await app.get(BanksService, { strict: false }).list();
      await application?.close();
      for (const name of names) delete process.env[`${name}_FILE`];
    }
    expect(subjects()).toEqual([simulator.application.subject, simulator.application.subject]);
  });

  it('quotes messages as the module has them, and names variables that there are', async () => {
    const room = join(ROOT, 'lib/tls');
    const files = [
      ...(await readdir(room, { recursive: true }))
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join(room, file)),
      join(ROOT, 'lib/config/read-file.ts'),
    ];
    const sources = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    const source = sources.join('\n');
    const table = document.text.split('## What is checked')[1]?.split('\n## ')[0] ?? '';
    const rows = [...table.matchAll(/^\| (`.*?) +\| /gm)].map(([, cell = '']) => cell);
    const messages = rows.flatMap((cell) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted),
    );
    expect(messages.length).toBeGreaterThan(20);
    expect(messages.filter((message) => !source.includes(message))).toEqual([]);

    const asked = new Set<string>();
    readVariables((variable) => void asked.add(variable));
    const named = document.text.match(/SERVICE_[A-Z_]+[A-Z]/g) ?? [];
    expect(named.filter((name) => !asked.has(name))).toEqual([]);
  });
});
