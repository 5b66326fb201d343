import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

export interface Fence {
  language: string;
  text: string;
  /** Of TypeScript blocks, which begin with a comment that names the file. */
  file?: string;
}

export async function readReadme(): Promise<{ text: string; fences: Fence[] }> {
  const text = await readFile(join(ROOT, 'README.md'), 'utf8');
  const fences = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language = '', body = '']) => ({
    language,
    text: body,
    file: /^\/\/ (\S+\.ts)\n/.exec(body)?.[1],
  }));
  return { text, fences };
}

/** Writes the TypeScript blocks to files of their names, where imports resolve as in this project. */
export async function writeSnippets(
  fences: Fence[],
): Promise<{ files: string[]; path(file: string): string; remove(): Promise<void> }> {
  const folder = join(ROOT, 'test/.readme');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder);
  const path = (file: string): string => join(folder, file);
  const blocks = fences.filter(({ language }) => language === 'ts');
  for (const { file, text } of blocks) {
    if (!file) throw new Error(`A block of the README does not begin with its file's name:\n${text}`);
    await writeFile(path(file), text);
  }
  return {
    files: blocks.map(({ file = '' }) => path(file)),
    path,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
