import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { Test } from '@nestjs/testing';
import { ServiceHttpService, ServiceModule } from 'nestjs-service';
import { runCommand } from '../../lib/cli/run-command.js';
import { run } from '../../lib/cli/simulator.js';
import { commandIo } from '../helpers/command-io.js';
import { readDocument } from '../helpers/readme.js';
import { CollectingLogger } from '../helpers/secret-scan.js';

describe('nestjs-service simulator --routes', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'simulator-routes-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return name;
  };

  /** Runs the command in this process, and an application against it. */
  async function withHost(routes: string, task: (http: ServiceHttpService) => Promise<void>): Promise<void> {
    const io = commandIo({}, { cwd: folder });
    let end = (): void => undefined;
    const isEnded = new Promise<void>((resolve) => (end = resolve));
    io.endSignal = () => isEnded;
    const { out } = io;
    const isReady = new Promise<void>((resolve) => {
      io.out = (text) => {
        out(text);
        if (String(text).endsWith('Requests:\n')) resolve();
      };
    });
    const done = run(['--port', '0', '--dir', 'simulator', '--routes', routes], io);
    try {
      await Promise.race([isReady, done]);
      expect(io.printed()).toContain('\n  Also answers GET /accounts/v1/{id}\n');
      const variables = parseEnv(await readFile(join(folder, 'simulator/.env'), 'utf8')) as Record<
        string,
        string
      >;
      Object.assign(process.env, variables);
      const module = await Test.createTestingModule({ imports: [ServiceModule.forRoot()] })
        .setLogger(new CollectingLogger())
        .compile();
      for (const name of Object.keys(variables)) delete process.env[name];
      await module.init();
      await task(module.get(ServiceHttpService));
      await module.close();
    } finally {
      end();
    }
    expect(await done).toBe(0);
  }

  it('answers as the JSON file of the guide says', async () => {
    const { fences } = await readDocument('docs/command.md');
    const { text = '' } = fences.find(({ language }) => language === 'json') ?? {};
    await withHost(await file('guide.json', text), async (http) => {
      expect(await http.get('/accounts/v1/7')).toEqual({ id: 'a-1', balance: 10 });
      expect(await http.delete('/accounts/v1/7')).toBeUndefined();
      expect(await http.get('/banks/v1')).toHaveLength(10);
    });
  });

  it('answers as the module of the guide says', async () => {
    const { fences } = await readDocument('docs/command.md');
    const { text = '' } = fences.find(({ language }) => language === 'js') ?? {};
    await withHost(await file('guide.mjs', text), async (http) => {
      expect(await http.get('/accounts/v1/7?currency=SAR')).toEqual({ id: '7', currency: 'SAR' });
    });
  });

  it.each([
    ['none.json', undefined, 'cannot be read: ENOENT'],
    ['half.json', '{ "GET', 'cannot be read: '],
    ['throws.mjs', 'throw new Error("of the module")', 'cannot be read: of the module'],
    [
      'list.json',
      '[]',
      'has no object, in a module as its default export. It has answers by method and path, for example {',
    ],
    ['nothing.mjs', 'export const routes = {}', 'has no object, in a module as its default export.'],
    ['path.json', '{ "GET accounts": {} }', "'GET accounts': a path is as '/accounts/v1/{id}'"],
    ['path-only.json', '{ "/accounts/v1": {} }', "'/accounts/v1': it is not a method, a space and a path."],
    [
      'more.json',
      '{ "GET /accounts now": {} }',
      "'GET /accounts now': it is not a method, a space and a path.",
    ],
    ['answer.json', '{ "GET /accounts/v1": { "id": 1 } }', "and not with 'id'. The content of a JSON answer"],
    [
      'both.json',
      '{ "GET /accounts/v1": { "json": 1, "body": "" } }',
      "'GET /accounts/v1': an answer has json or body",
    ],
  ])('refuses %s', async (name, text, message) => {
    if (text !== undefined) await file(name, text);
    const io = commandIo({}, { cwd: folder });
    const args = ['simulator', '--port', '0', '--dir', 'refused', '--routes', name];
    expect(await runCommand(args, io)).toBe(2);
    expect(io.printed()).toBe('');
    expect(io.complained()).toContain('--routes: ');
    expect(io.complained()).toContain(message);
  });
});
