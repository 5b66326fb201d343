import { cp, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import ts from 'typescript';
import { compilerOptions, ROOT, type Snippets } from './readme.js';

/** The snippets of a document beside the package, compiled, for a plain `node`. */
export interface CompiledSnippets {
  folder: string;
  /** Of the compiled snippet, by the name of its TypeScript file. */
  path(file: string): string;
  remove(): Promise<void>;
}

/** Compiles snippets, and the package that they import, as an application has them installed. */
export async function compileSnippets({ folder: source, files }: Snippets): Promise<CompiledSnippets> {
  const folder = await mkdtemp(join(tmpdir(), 'readme-app-'));
  const outDir = join(folder, 'app');
  const program = ts.createProgram(files, {
    ...compilerOptions(),
    outDir,
    noEmit: false,
    declaration: false,
  });
  program.emit();
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
