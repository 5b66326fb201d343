import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Module, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BanksService, ServiceModule, type ServiceModuleOptions } from 'nestjs-service';
import { type ServiceSimulator, stubService } from 'nestjs-service/testing';
import { deadPort } from '../helpers/loopback.js';
import { readDocument, writeSnippets } from '../helpers/readme.js';
import { startSource } from '../helpers/source-process.js';
import { startSimulator } from '../helpers/simulators.js';

const before = { ...process.env };
const document = await readDocument('docs/getting-started.md');
const snippets = await writeSnippets(document.fences, { name: 'getting-started' });
// Its test of a host is a test of this file.
await import(snippets.path('src/banks/banks.controller.spec.ts'));

afterEach(() => {
  for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
});

describe('docs/getting-started.md', () => {
  let simulator: ServiceSimulator;
  let folder: string;

  beforeAll(async () => {
    [simulator, folder] = await Promise.all([startSimulator(), mkdtemp(join(tmpdir(), 'getting-started-'))]);
  });
  afterAll(async () => {
    await simulator.stop();
    await snippets.remove();
    await rm(folder, { recursive: true });
  });

  it('has an application that runs without changes, and ends by a signal', async () => {
    const port = await deadPort();
    const application = startSource(snippets.path('src/main.ts'), {
      cwd: folder,
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
      expect((await post('/customers', { app_user_id: 'u-1' })).status).toBe(201);
      expect((await post('/customers', {})).status).toBe(400);
      expect(await (await fetch(url)).text()).toBe('Hello World!');
      application.signal('SIGTERM');
      expect(await application.exited).toEqual({ code: null, signal: 'SIGTERM' });
    } finally {
      await application.kill();
    }
  }, 60_000);

  it('has a root module that gives the services to every module, and one client', async () => {
    @Injectable()
    class Feature {
      constructor(readonly banks: BanksService) {}
    }
    @Module({ providers: [Feature] })
    class FeatureModule {}
    const { AppModule } = (await import(snippets.path('src/app.module.ts'))) as { AppModule: Type };
    const builder = Test.createTestingModule({ imports: [AppModule, FeatureModule] });
    stubService(builder);
    const module = await builder.compile();
    expect(module.get(Feature, { strict: false }).banks).toBe(module.get(BanksService, { strict: false }));
    await module.close();
  });

  it('says how to share one client without isGlobal', async () => {
    @Module({ imports: [ServiceModule.forRoot()], exports: [ServiceModule] })
    class SharedModule {}
    @Injectable()
    class Feature {
      constructor(readonly banks: BanksService) {}
    }
    @Module({ imports: [SharedModule], providers: [Feature] })
    class FeatureModule {}
    const builder = Test.createTestingModule({ imports: [SharedModule, FeatureModule] });
    stubService(builder);
    const module = await builder.compile();
    expect(module.get(Feature, { strict: false }).banks).toBe(module.get(BanksService, { strict: false }));
    await module.close();
  });

  it('has variables for a start that only looks at the application', async () => {
    const { text = '' } = document.fences.find(({ text }) => text.includes('service.invalid')) ?? {};
    for (const line of text.trim().split('\n'))
      Object.assign(process.env, Object.fromEntries([line.split('=', 2)]));
    const module = await Test.createTestingModule({ imports: [ServiceModule.forRoot()] })
      .setLogger(false as never)
      .compile();
    await module.init();
    expect(module.get(BanksService)).toBeDefined();
    await module.close();
  });

  it('adds no pipe that changes what the routes of an application get', () => {
    expect(document.fences.filter(({ text }) => text.includes('useGlobalPipes'))).toEqual([]);
  });

  it('has a .env for each of the five modes, with all it takes', async () => {
    const blocks = document.fences.filter(
      ({ language, text }) => language === 'dotenv' && !text.includes('service.invalid'),
    );
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

  async function fileOf(name: string, value: string): Promise<string> {
    const path = join(folder, name);
    await writeFile(path, value.replaceAll('\\n', '\n'));
    return path;
  }
});
