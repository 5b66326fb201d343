import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { spawnSync } from 'node:child_process';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type * as Package from 'nestjs-service';
import type * as Testing from 'nestjs-service/testing';
import { readDocument, ROOT, type Snippets } from '../helpers/readme.js';
import { programOf, typeProblems } from '../helpers/type-problems.js';

/** The project's sources, changed as CONTRIBUTING.md says. */
const folder = join(ROOT, 'test/.readme/contributing');
const LIMIT_MS = 120_000;

interface UmbrellasService {
  create(umbrella: object): Promise<unknown>;
}

describe('CONTRIBUTING.md', () => {
  let added: string[];

  beforeAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    for (const name of ['lib', 'eslint.config.js']) {
      await cp(join(ROOT, name), join(folder, name), { recursive: true });
    }
    const { fences } = await readDocument('CONTRIBUTING.md');
    added = [];
    for (const { file, text } of fences) {
      if (file === undefined) continue;
      added.push(join(folder, file));
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), text);
    }
    for (const { text } of fences.filter(({ language }) => language === 'diff')) {
      const applied = spawnSync('git', ['apply', '-'], {
        cwd: folder,
        input: text,
        encoding: 'utf8',
        // As in a folder that is in no repository: git leaves out what the repository ignores.
        env: { ...process.env, GIT_CEILING_DIRECTORIES: dirname(folder) },
      });
      expect(applied.stderr + applied.stdout).toBe('');
    }
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it(
    'has four steps, after which the types are right',
    async () => {
      await writeFile(join(folder, 'globals.d.ts'), '');
      const sources: Snippets = {
        folder,
        files: [...added, join(folder, 'lib/index.ts'), join(folder, 'lib/testing/index.ts')],
        path: (file) => join(folder, file),
        stub: (name) => name,
        remove: () => Promise.resolve(),
      };
      expect(added).toHaveLength(2);
      expect(typeProblems(sources, programOf(sources))).toEqual([]);
    },
    LIMIT_MS,
  );

  it('has four steps, after which a host can inject the resource and call it', async () => {
    const changed = (await import(join(folder, 'lib/index.ts'))) as typeof Package & {
      UmbrellasService: Type<UmbrellasService>;
    };
    const { ServiceSimulator } = (await import(join(folder, 'lib/testing/index.ts'))) as typeof Testing;
    const simulator = await ServiceSimulator.start();
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'mtls' });
    // Not yet a name in the types of this project.
    const http: object = { trailingSlash: ['umbrellas'] };
    const module = await Test.createTestingModule({
      imports: [changed.ServiceModule.forRoot({ ...options, http })],
    }).compile();
    const umbrellas = module.get(changed.UmbrellasService);
    expect(await umbrellas.create({ customer_id: 'c-1' })).toEqual({ umbrella_id: expect.any(String) });
    await expect(umbrellas.create({})).rejects.toBeInstanceOf(changed.ServiceRequestError);
    expect(simulator.apiRequests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /umbrellas/v1/',
    ]);
    await module.close();
    await simulator.stop();
  });

  it('has four steps, after which a test of a host can have a double of the resource', async () => {
    const { UmbrellasService } = (await import(join(folder, 'lib/index.ts'))) as {
      UmbrellasService: Type<UmbrellasService>;
    };
    const { ServiceStub, ServiceTestingModule } = (await import(
      join(folder, 'lib/testing/index.ts')
    )) as typeof Testing;
    const answers: unknown[] = [];
    const doubles: object[] = [{}, { umbrellas: { create: () => ({ umbrella_id: 'mine' }) } }];
    for (const each of doubles) {
      const imports = [ServiceTestingModule.forRoot(each)];
      const module = await Test.createTestingModule({ imports }).compile();
      answers.push(await module.get(UmbrellasService).create({ customer_id: 'c-1' }));
      expect(module.get(ServiceStub).calls.map(({ method }) => method)).toEqual(['umbrellas.create']);
      await module.close();
    }
    expect(answers).toEqual([{}, { umbrella_id: 'mine' }]);
  });
});
