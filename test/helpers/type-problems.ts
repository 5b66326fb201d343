import { join } from 'node:path';
import ts from 'typescript';
import { ROOT, type Snippets } from './readme.js';

// Apart from readme.ts: the compiler takes a third of a second to load, in each spec file.

/** The snippets and all that they import, by the project's own settings. */
export function programOf(...documents: Snippets[]): ts.Program {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
    config: { compilerOptions: object };
  };
  const settings = { ...config.compilerOptions, declaration: false, noUnusedLocals: false };
  const { options } = ts.convertCompilerOptionsFromJson(settings, ROOT);
  const files = documents.flatMap(({ folder, files }) => [...files, join(folder, 'globals.d.ts')]);
  return ts.createProgram(files, options);
}

/** The compiler's errors in the snippets. `npm run typecheck` checks the sources that they import. */
export function typeProblems({ files }: Snippets, program: ts.Program): string[] {
  return files
    .flatMap((file) => ts.getPreEmitDiagnostics(program, program.getSourceFile(file)))
    .map(
      ({ messageText, file }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
    );
}
