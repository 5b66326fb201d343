import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const OWN_NAME = /^nestjs-service(?=$|\/)/;
const LIB = new URL('../lib', import.meta.url).href;
/** What was compiled is kept, because each process would need a second for it. */
const CACHE = new URL('../node_modules/.cache/nestjs-service-sources/', import.meta.url);

const { version } = createRequire(import.meta.url)('@swc/core/package.json');

const SETTINGS = {
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
    target: 'es2022',
  },
};

/** Sources import `.js` files, and hosts import the package by its name. */
export function resolve(specifier, context, next) {
  if (OWN_NAME.test(specifier)) return next(`${specifier.replace(OWN_NAME, LIB)}/index.ts`, context);
  const fromSource = context.parentURL?.endsWith('.ts') && /^\.{1,2}\/.*\.js$/.test(specifier);
  return next(fromSource ? specifier.replace(/\.js$/, '.ts') : specifier, context);
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const filename = fileURLToPath(url);
  return { format: 'module', source: await compile(filename), shortCircuit: true };
}

async function compile(filename) {
  const source = await readFile(filename, 'utf8');
  const inputs = [version, JSON.stringify(SETTINGS), filename, source].join('\n');
  const kept = new URL(`${createHash('sha256').update(inputs).digest('hex')}.js`, CACHE);
  try {
    return await readFile(kept, 'utf8');
  } catch {
    const { transform } = await import('@swc/core');
    const { code } = await transform(source, { ...SETTINGS, filename });
    await keep(kept, code);
    return code;
  }
}

/** Several processes may do this at the same time. Where nothing can be written, nothing is kept. */
async function keep(file, code) {
  try {
    const part = new URL(`${file.href}.${randomUUID()}`);
    await mkdir(CACHE, { recursive: true });
    await writeFile(part, code);
    await rename(part, file);
  } catch {
    // The next process compiles it again.
  }
}
