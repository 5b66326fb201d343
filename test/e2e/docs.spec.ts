import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type DynamicModule, type INestApplicationContext, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { BanksService, ServiceAuthService, ServiceModule } from 'nestjs-service';
import { type IssuedCertificate, type ServiceSimulator } from 'nestjs-service/testing';
import { exec, execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readVariables } from '../../lib/config/variables.js';
import { findPeer, itWith, requirePeer } from '../helpers/optional-peers.js';
import { type Fence, readDocument, type Snippets, writeSnippets } from '../helpers/readme.js';
import { startRedis } from '../helpers/redis.js';
import { startSimulator } from '../helpers/simulators.js';

describe('docs/fleet.md', () => {
  const program = findPeer('redis-server');
  const redisIt = itWith(program, 'the set-up of docs/fleet.md');
  let snippets: Snippets;

  beforeAll(async () => {
    snippets = await writeSnippets((await readDocument('docs/fleet.md')).fences, { name: 'fleet' });
  });
  afterAll(() => snippets.remove());

  redisIt('has a set-up whose processes share tokens', async () => {
    const redis = await startRedis(requirePeer(program));
    const simulator = await startSimulator();
    const variables = { ...simulator.env({ authentication: 'oauth' }), REDIS_URL: redis.url };
    Object.assign(process.env, variables);
    try {
      const { AppModule } = (await import(snippets.path('fleet.module.ts'))) as { AppModule: Type };
      for (let count = 0; count < 2; count++) {
        const host = { module: class Host {}, imports: [AppModule] };
        const app = await NestFactory.createApplicationContext(host, { logger: false, abortOnError: false });
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
});

describe('docs/certificates.md', () => {
  const openssl = findPeer('openssl');
  let simulator: ServiceSimulator;
  let document: { text: string; fences: Fence[] };
  let snippets: Snippets;
  let folder: string;
  let application: INestApplicationContext | undefined;
  let next: IssuedCertificate;
  const before = { ...process.env };

  beforeAll(async () => {
    [simulator, document, folder] = await Promise.all([
      startSimulator(),
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

  itWith(openssl, 'the conversion of a .p12')(
    'has commands that convert a .p12, and with -legacy one of old',
    async () => {
      const run = (command: string) =>
        promisify(exec)(command.replaceAll('openssl', requirePeer(openssl)), { cwd: folder });
      const commands =
        document.fences
          .find(({ text }) => text.includes('app.p12'))
          ?.text.trim()
          .split('\n') ?? [];
      expect(commands).toHaveLength(2);
      const convert = async (option: string) => {
        for (const command of commands) await run(`${command} ${option} -passin pass:old`);
      };
      await writeFile(join(folder, 'both.pem'), next.certificate + next.privateKey);
      const archive = 'openssl pkcs12 -export -in both.pem -out app.p12 -passout pass:old';
      for (const option of ['', '-legacy']) {
        await run(`${archive} ${option}`);
        if (option) await expect(convert('')).rejects.toThrow(/unsupported/);
        await convert(option);
        setVariables();
        const tls = {
          certificate: { file: join(folder, 'tls.crt') },
          privateKey: { file: join(folder, 'tls.key') },
          chain: simulator.chain,
        };
        const app = await start(ServiceModule.forRoot({ tls }));
        await app.get(BanksService).list();
        expect(subjects().at(-1)).toBe(next.subject);
        await app.close();
      }
    },
  );

  it('has variables with files, for an agent, that work; and so has the Deployment of docs/operation.md', async () => {
    const operation = await readDocument('docs/operation.md');
    const blocks = [...document.fences, ...operation.fences].filter(({ text }) =>
      text.includes('SERVICE_TLS_CERTIFICATE_FILE'),
    );
    expect(blocks.map(({ language }) => language)).toEqual(['dotenv', 'yaml']);
    for (const { text } of blocks) {
      const values = setVariables();
      const names = [...text.matchAll(/(SERVICE_[A-Z_]+)_FILE(?:=|, value: )\//g)].map(
        ([, name = '']) => name,
      );
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

  it('names variables that there are', () => {
    const asked = new Set<string>();
    readVariables((variable) => void asked.add(variable));
    const named = document.text.match(/SERVICE_[A-Z_]+[A-Z]/g) ?? [];
    expect(named.filter((name) => !asked.has(name))).toEqual([]);
  });
});

describe('docs/service.md', () => {
  let simulator: ServiceSimulator;
  let folder: string;

  beforeAll(async () => {
    [simulator, folder] = await Promise.all([startSimulator(), mkdtemp(join(tmpdir(), 'docs-service-'))]);
  });
  afterAll(() => Promise.all([simulator.stop(), rm(folder, { recursive: true })]));

  it('has a command that tests mutual TLS, and creates no customer', async () => {
    const { fences } = await readDocument('docs/service.md');
    const command = fences.find(({ language }) => language === 'sh')?.text ?? '';
    const { certificate, privateKey } = simulator.application;
    const files = {
      'application.crt': certificate,
      'private-key.pem': privateKey,
      'service-chain.pem': simulator.chain,
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const { SERVICE_APP_TOKEN, SERVICE_BASE_URL } = simulator.env();
    const { stdout } = await promisify(execFile)('sh', ['-c', command], {
      cwd: folder,
      env: { PATH: process.env.PATH, SERVICE_APP_TOKEN, SERVICE_BASE_URL },
      timeout: 20_000,
    });
    expect(JSON.parse(stdout)).toMatchObject({ status: expect.any(String), message: expect.any(String) });
    expect(simulator.apiRequests).toMatchObject([
      {
        face: 'base',
        method: 'POST',
        path: '/customers/v1',
        status: 400,
        certificateSubject: simulator.application.subject,
      },
    ]);
    expect(simulator.customers).toEqual([]);
  });
});
