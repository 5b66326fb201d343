import { cp, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type ts from 'typescript';
import { ROOT, type Snippets } from './readme.js';

/** The snippets of a document beside the package, compiled, for a plain `node`. */
export interface CompiledSnippets {
  folder: string;
  /** Of the compiled snippet, by the name of its TypeScript file. */
  path(file: string): string;
  remove(): Promise<void>;
}

/** The program's snippets, and the package that they import, as an application has them installed. */
export async function compileSnippets(
  { folder: source }: Snippets,
  program: ts.Program,
): Promise<CompiledSnippets> {
  const folder = await mkdtemp(join(tmpdir(), 'readme-app-'));
  const outDir = join(folder, 'app');
  const { outDir: emitted = '' } = program.getCompilerOptions();
  program.emit(undefined, (path, text) => {
    const file = join(outDir, relative(emitted, path));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  });
  const installed = join(outDir, 'node_modules/nestjs-service');
  await cp(join(ROOT, 'package.json'), join(installed, 'package.json'));
  await rename(join(outDir, 'lib'), join(installed, 'dist'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(outDir, 'package.json'), '{ "type": "module" }');
  const at = join(outDir, relative(ROOT, source));
  return {
    folder: at,
    path: (file) => join(at, file.replace(/\.ts$/, '.js')),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
