import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** What the jest and the vitest of a Nest scaffold have without an import. */
const GLOBALS = `
import {
  type afterAll as AfterAll,
  type afterEach as AfterEach,
  type beforeAll as BeforeAll,
  type describe as Describe,
  type expect as Expect,
  type it as It,
} from '@jest/globals';
declare global {
  const afterAll: typeof AfterAll;
  const afterEach: typeof AfterEach;
  const beforeAll: typeof BeforeAll;
  const describe: typeof Describe;
  const expect: typeof Expect;
  const it: typeof It;
}
`;

/** What `nest new` makes, and a root module in the guides imports. */
const SCAFFOLD = join(ROOT, 'node_modules/@nestjs/schematics/dist/lib/application/files/ts-esm/src');

export interface Fence {
  language: string;
  text: string;
  /** Of TypeScript blocks, which begin with a comment that names the file. */
  file?: string;
}

/** A Markdown file of the project, by its path from the top, with its fenced blocks. */
export async function readDocument(path: string): Promise<{ text: string; fences: Fence[] }> {
  const text = await readFile(join(ROOT, path), 'utf8');
  const fences = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language = '', body = '']) => ({
    language,
    text: body,
    file: /^\/\/ (\S+\.ts)\n/.exec(body)?.[1],
  }));
  return { text, fences };
}

/** The application of docs/testing.md, if the blocks of another guide test it. */
async function blocksOfTesting(blocks: Fence[]): Promise<Fence[]> {
  const file = 'host.module.ts';
  const isMissing = blocks.some(({ text }) => text.includes("'./host.module.js'"));
  if (!isMissing || blocks.some((block) => block.file === file)) return [];
  return (await readDocument('docs/testing.md')).fences.filter((block) => block.file === file);
}

export interface Snippets {
  folder: string;
  files: string[];
  path(file: string): string;
  /** The folder of a stubbed package. */
  stub(name: string): string;
  remove(): Promise<void>;
}

/**
 * Writes the TypeScript blocks to files of their names, where imports resolve as in this project. `name` keeps the
 * documents apart; `stubs`: the packages of test/helpers/sdk-stubs can be imported too.
 */
export async function writeSnippets(
  fences: Fence[],
  { name = 'README', stubs = false }: { name?: string; stubs?: boolean } = {},
): Promise<Snippets> {
  const folder = join(ROOT, 'test/.readme', name);
  const packages = join(folder, 'node_modules');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  if (stubs) await cp(join(import.meta.dirname, 'sdk-stubs'), packages, { recursive: true });
  const path = (file: string): string => join(folder, file);
  const own = fences.filter(({ language }) => language === 'ts');
  const blocks = [...own, ...(await blocksOfTesting(own))];
  for (const { file, text } of blocks) {
    if (!file) throw new Error(`A block of ${name} does not begin with its file's name:\n${text}`);
    await mkdir(dirname(path(file)), { recursive: true });
    await writeFile(path(file), text);
  }
  if (blocks.some(({ file }) => file === 'src/app.module.ts')) {
    for (const file of ['app.controller.ts', 'app.service.ts']) {
      await cp(join(SCAFFOLD, file), path(`src/${file}`));
    }
  }
  await writeFile(join(folder, 'globals.d.ts'), GLOBALS);
  return {
    folder,
    files: blocks.map(({ file = '' }) => path(file)),
    path,
    stub: (stubbed) => join(packages, stubbed),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
