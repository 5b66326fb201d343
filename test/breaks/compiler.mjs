// What the TypeScript compiler knows: whether lib/ compiles with a break, and which spec reaches which file.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

/** Gives a function that tells whether lib/ compiles while a file has another text. */
export function compilerOf(root) {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.build.json'), ts.sys.readFile);
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  // A name that a break leaves unused is no type error.
  Object.assign(options, { noEmit: true, noUnusedLocals: false, noUnusedParameters: false });
  const host = ts.createIncrementalCompilerHost(options);
  const { getSourceFile } = host;
  const sources = new Map();
  host.getSourceFile = (name, ...rest) => {
    if (!sources.has(name)) sources.set(name, getSourceFile(name, ...rest));
    return sources.get(name);
  };
  const check = (before) => {
    const program = ts.createSemanticDiagnosticsBuilderProgram(fileNames, options, host, before);
    const errors = [...program.getSyntacticDiagnostics(), ...program.getSemanticDiagnostics()];
    return { program, isClean: errors.length === 0 };
  };
  const { program, isClean } = check();
  if (!isClean) throw new Error('lib/ has type errors: npm run typecheck');
  return (file, text) => {
    const name = join(root, file);
    const before = sources.get(name);
    const broken = ts.createSourceFile(name, text, before.languageVersion, true);
    sources.set(name, Object.assign(broken, { ...before, ...broken, version: ts.sys.createHash(text) }));
    const compiles = check(program).isClean;
    sources.set(name, before);
    return compiles;
  };
}

/** Whether a spec imports a file, itself or through others, or starts processes. */
export function reaches(root, spec, file) {
  const seen = new Set([join(root, spec)]);
  for (const from of seen) {
    if (from === join(root, file)) return true;
    for (const { fileName } of ts.preProcessFile(readFileSync(from, 'utf8')).importedFiles) {
      if (fileName === 'node:child_process') return true;
      const entry = /^nestjs-service(.*)/.exec(fileName);
      const path = entry
        ? join(root, 'lib', entry[1], 'index.ts')
        : join(dirname(from), fileName.replace(/\.js$/, '.ts'));
      if (path.endsWith('.ts') && existsSync(path)) seen.add(path);
    }
  }
  return false;
}
