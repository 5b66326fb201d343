// Compiles lib/ to CommonJS in dist/cjs, for the `require` condition of package.json: only a jest that runs CommonJS
// uses it. Node takes `module-sync` before it, and a bundler `module`, so in a running application there is one copy.
import { transformFile } from '@swc/core';
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const lib = join(import.meta.dirname, '..', 'lib');
const dist = join(import.meta.dirname, '..', 'dist');
const target = join(dist, 'cjs');
/** Commands of their own: no test of a host loads them. */
const LEFT_OUT = /^(cli|schematics)[/\\]/;

const options = {
  swcrc: false,
  module: { type: 'commonjs' },
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
    target: 'es2022',
    minify: { format: { comments: false } },
  },
};

for (const file of await readdir(lib, { recursive: true })) {
  if (LEFT_OUT.test(file) || !/\.(ts|js)$/.test(file)) continue;
  const output = join(target, file);
  await mkdir(dirname(output), { recursive: true });
  if (file.endsWith('.js')) {
    await cp(join(lib, file), output);
    continue;
  }
  await writeFile(output.replace(/\.ts$/, '.js'), (await transformFile(join(lib, file), options)).code);
  const types = file.replace(/\.ts$/, '.d.ts');
  await cp(join(dist, types), join(target, types));
}
await writeFile(join(target, 'package.json'), '{ "type": "commonjs" }\n');
