import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const NODENEXT = { module: 'nodenext' };
const BUNDLER = { module: 'esnext', moduleResolution: 'bundler' };
const NODE10 = { module: 'commonjs', moduleResolution: 'node10' };

/** The compilers and resolutions of hosts. */
const SETTINGS = [
  { compiler: 'typescript-5', options: { ...NODENEXT, strict: true } },
  { compiler: 'typescript-6', options: { ...BUNDLER, strict: false } },
];
const CLASSIC = { compiler: 'typescript-5', options: { ...NODE10, strict: true } };

/**
 * Compiles what uses every subpath of the package. All declarations that it reaches are checked too.
 *
 * @param run runs Node in the consumer's folder
 */
export function typesChecks({ folder, isCommonJs, run }) {
  return [...SETTINGS, ...(isCommonJs ? [CLASSIC] : [])].map(({ compiler, options }) => {
    const { strict, module, moduleResolution = module } = options;
    const name = `${compiler}, ${moduleResolution}, ${strict ? 'strict' : 'not strict'}`;
    return {
      name,
      run: async () => {
        const project = join(folder, 'types.json');
        const compilerOptions = {
          ...options,
          // The strictest that a host may have.
          exactOptionalPropertyTypes: strict,
          target: 'ES2023',
          types: ['node'],
          esModuleInterop: true,
          experimentalDecorators: true,
          emitDecoratorMetadata: true,
          skipLibCheck: false,
          noEmit: true,
        };
        await writeFile(project, JSON.stringify({ compilerOptions, files: ['src/subpaths.ts'] }));
        await run([join('node_modules', compiler, 'bin', 'tsc'), '-p', project]);
      },
    };
  });
}
