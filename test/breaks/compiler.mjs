// What the TypeScript compiler knows: whether lib/ compiles with a break, and which spec reaches which file.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

/** Gives a function that tells whether a file of lib/ with another text has no error of syntax or types. */
export function compilerOf(root) {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.build.json'), ts.sys.readFile);
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  // A name that a break leaves unused is no type error.
  Object.assign(options, { noUnusedLocals: false, noUnusedParameters: false });
  const host = ts.createCompilerHost(options, true);
  const sources = new Map();
  const { getSourceFile } = host;
  host.getSourceFile = (name, ...rest) => {
    if (!sources.has(name)) sources.set(name, getSourceFile(name, ...rest));
    return sources.get(name);
  };
  let program = ts.createProgram(fileNames, options, host);
  return (file, text) => {
    const name = join(root, file);
    const before = sources.get(name);
    const broken = ts.createSourceFile(name, text, before.languageVersion, true);
    sources.set(name, Object.assign(broken, { impliedNodeFormat: before.impliedNodeFormat }));
    program = ts.createProgram(fileNames, options, host, program);
    sources.set(name, before);
    return (
      [...program.getSyntacticDiagnostics(broken), ...program.getSemanticDiagnostics(broken)].length === 0
    );
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
