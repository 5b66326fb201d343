import { expect, it } from '@jest/globals';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import ts from 'typescript';
import { readDocument, ROOT, type Snippets, writeSnippets } from '../helpers/readme.js';

/** Makes one program of the snippets and their imports, with the project's compiler settings. */
function programOf(documents: Snippets[]): ts.Program {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
    config: { compilerOptions: object };
  };
  const settings = { ...config.compilerOptions, declaration: false, noUnusedLocals: false };
  const { options } = ts.convertCompilerOptionsFromJson(settings, ROOT);
  const files = documents.flatMap(({ folder, files }) => [...files, join(folder, 'globals.d.ts')]);
  return ts.createProgram(files, options);
}

/** The compiler's errors in a document. `npm run typecheck` checks the sources that it imports. */
function problemsIn({ files }: Snippets, program: ts.Program): string[] {
  return files
    .flatMap((file) => ts.getPreEmitDiagnostics(program, program.getSourceFile(file)))
    .map(
      ({ messageText, file }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
    );
}

it('the TypeScript code of the README and of all guides except the recipes compiles', async () => {
  const files = await readdir(join(ROOT, 'docs'));
  // Recipes are compiled in test/consumers, which installs their packages.
  const guides = files.filter((name) => name.endsWith('.md') && name !== 'recipes.md');
  const documents = new Map<string, Snippets>();
  for (const name of ['README.md', ...guides.map((guide) => `docs/${guide}`)]) {
    const { fences } = await readDocument(name);
    // Express has no types of its own, and test/consumers installs them.
    const own = fences.filter(({ text }) => !text.includes("from 'express'"));
    const snippets = await writeSnippets(own, { name: `types-${basename(name, '.md')}`, stubs: true });
    if (snippets.files.length > 0) documents.set(name, snippets);
    else await snippets.remove();
  }
  expect(documents.size).toBeGreaterThanOrEqual(9);
  // Compile all at once, because each compilation loads the types of Nest, axios and Node again.
  const program = programOf([...documents.values()]);
  const problems = [...documents].map(([name, snippets]) => [name, problemsIn(snippets, program)]);
  expect(problems).toEqual([...documents.keys()].map((name) => [name, []]));
  for (const snippets of documents.values()) await snippets.remove();
}, 120_000);
