import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { readReadme, ROOT, type Snippets, writeSnippets } from '../helpers/readme.js';
import { startSimulator } from '../helpers/simulators.js';

const before = { ...process.env };

afterEach(() => {
  for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
});

describe('README', () => {
  let simulator: ServiceSimulator;
  let readme: Awaited<ReturnType<typeof readReadme>>;
  let snippets: Snippets;

  beforeAll(async () => {
    [simulator, readme] = await Promise.all([startSimulator(), readReadme()]);
    snippets = await writeSnippets(readme.fences);
  });
  afterAll(() => Promise.all([simulator.stop(), snippets.remove()]));

  it('has a first call that works with the variables of the sandbox', async () => {
    Object.assign(process.env, simulator.env({ environment: 'sandbox', authentication: 'app-token' }));
    const { AppModule } = (await import(snippets.path('app.module.ts'))) as { AppModule: Type };
    const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
    const app = module.createNestApplication();
    await app.listen(0, '127.0.0.1');
    try {
      expect(await (await fetch(`${await app.getUrl()}/banks`)).json()).toHaveLength(10);
    } finally {
      await app.close();
    }
  });

  it('has the first call in its first 30 lines', () => {
    const [top] = readme.text.split('export class AppModule');
    expect(top.split('\n').length).toBeLessThanOrEqual(30);
  });

  it('names every guide', async () => {
    const guides = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md'));
    const named = [...(readme.text.split('## Guides')[1] ?? '').matchAll(/\]\(docs\/([\w-]+\.md)\)/g)].map(
      ([, name]) => name,
    );
    expect([...named].sort()).toEqual(guides.sort());
  });

  it('has two commands that package.json has, in a clone of its repository', async () => {
    const commands = readme.fences.filter(({ language }) => language === 'sh').map(({ text }) => text.trim());
    const { scripts, repository } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: object;
      repository: { url: string };
    };
    expect(commands.slice(-2)).toEqual(['npm ci && npm start', 'npm ci && npm test']);
    expect(readme.text).toContain(`(${repository.url.replace(/^git\+|\.git$/g, '')})`);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['start', 'test']));
  });
});
