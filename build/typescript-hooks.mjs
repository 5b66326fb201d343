import { transform } from '@swc/core';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const OWN_NAME = /^nestjs-service(?=$|\/)/;
const LIB = new URL('../lib', import.meta.url).href;

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
  const { code } = await transform(await readFile(filename, 'utf8'), { ...SETTINGS, filename });
  return { format: 'module', source: code, shortCircuit: true };
}
