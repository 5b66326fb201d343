import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const GETTING_STARTED = 'docs/getting-started.md';
const TESTING = 'docs/testing.md';
const SIMULATOR = 'docs/simulator.md';
const EXCEPTION_FILTER = 'docs/exception-filter.md';
const RECIPES = 'docs/recipes.md';
const OPERATION = 'docs/operation.md';
const WEBHOOKS = 'docs/webhooks.md';
/** What `nest new` makes, and the guides' application imports. */
const SCAFFOLD = join(ROOT, 'node_modules/@nestjs/schematics/dist/lib/application/files/ts-esm/src');
/** Of each guide, the tests and the application that they test. */
const FILES = {
  [GETTING_STARTED]: [
    'src/app.module.ts',
    'src/banks/banks.controller.ts',
    'src/banks/banks.controller.spec.ts',
    'src/customers/customers.controller.ts',
  ],
  [TESTING]: ['host.module.ts', 'host.module.spec.ts', 'balances.spec.ts'],
  [SIMULATOR]: ['app.e2e-spec.ts'],
  [EXCEPTION_FILTER]: ['problem.filter.ts'],
};

async function readText(document) {
  return readFile(join(ROOT, document), 'utf8');
}

function blocksOf(text) {
  return [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language, body]) => ({ language, body }));
}

/** Finds a block of a document by its language and a part of it. */
async function readBlocks(document) {
  const blocks = blocksOf(await readText(document));
  return (language, part) => {
    const found = blocks.find((block) => block.language === language && block.body.includes(part));
    if (!found) throw new Error(`${document} has no ${language} block with ${part}`);
    return found.body;
  };
}

/**
 * What docs/getting-started.md has a newcomer do, in order: `{ command }`, or `{ file, text }` to write.
 */
export async function firstCall() {
  const text = await readText(GETTING_STARTED);
  const [, section] = /^## The first call$([^]*?)^## /m.exec(text) ?? [];
  if (section === undefined) throw new Error(`${GETTING_STARTED} has no section "The first call"`);
  return blocksOf(section).flatMap(({ language, body }) => {
    if (language === 'sh') {
      return body
        .trim()
        .split('\n')
        .map((command) => ({ command }));
    }
    const [, file] = /^\/\/ (src\/\S+)\n/.exec(body) ?? [];
    if (file === undefined) throw new Error(`A block does not begin with its file's name:\n${body}`);
    return [{ file, text: body }];
  });
}

/** The arguments of npm that docs/getting-started.md gives for a NestJS, with the packed tarball as the package. */
export async function installArguments(nest, tarball) {
  const block = await readBlocks(GETTING_STARTED);
  const part = nest === 11 ? '@nestjs/config@4' : '@nestjs/config @nestjs/axios';
  const [, , ...packages] = block('sh', part).trim().split(' ');
  return packages.map((name) => (name === 'nestjs-service' ? tarball : name));
}

/** Puts the application of docs/getting-started.md, without its tests, into src/getting-started of an ES module. */
export async function writeApplication(folder) {
  const files = ['src/main.ts', ...FILES[GETTING_STARTED].filter((file) => !file.endsWith('.spec.ts'))];
  await writeFiles(join(folder, 'src', 'getting-started'), GETTING_STARTED, false, files);
}

/** Changes a scaffold as docs/getting-started.md says: adds its snippets, and a test for `npm run test:e2e`. */
export async function followGettingStarted(folder) {
  await writeFiles(join(folder, 'src', 'getting-started'), GETTING_STARTED, true);
  const test = (await readBlocks(SIMULATOR))('ts', '// app.e2e-spec.ts\n');
  const path = "'../src/testing/host.module.js'";
  await writeFile(
    join(folder, 'test', 'host.e2e-spec.ts'),
    asCommonJs(test.replace("'./host.module.js'", path)),
  );
}

/** Puts the tests of docs/testing.md and docs/simulator.md into src/testing. */
export async function followTesting(folder) {
  const { type } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const target = join(folder, 'src', 'testing');
  for (const document of [TESTING, SIMULATOR]) await writeFiles(target, document, type !== 'module');
  await rename(join(target, 'app.e2e-spec.ts'), join(target, 'app.spec.ts'));
}

/** Puts the filter of docs/exception-filter.md into src/. */
export async function followExceptionFilter(folder) {
  await writeFiles(join(folder, 'src'), EXCEPTION_FILTER, false);
}

/** Puts the files of docs/recipes.md into src/, with the Express route of docs/webhooks.md, and its scripts beside it. */
export async function followRecipes(folder) {
  await mkdir(join(folder, 'src'), { recursive: true });
  const route = (await readBlocks(WEBHOOKS))('ts', '// express-webhook.ts\n');
  await writeFile(join(folder, 'src', 'express-webhook.ts'), route);
  for (const { language, body } of blocksOf(await readText(RECIPES))) {
    const [, file] = /^\/\/ (\S+)\n/.exec(body) ?? [];
    if (language === 'ts') await writeFile(join(folder, 'src', file), body);
    if (language === 'js') await writeFile(join(folder, file), body);
  }
}

/** A block of docs/recipes.md. */
export async function readRecipe(language, part) {
  return (await readBlocks(RECIPES))(language, part);
}

/** The variables of the Deployment in docs/operation.md, with their values. */
export async function readDeployment() {
  const text = (await readBlocks(OPERATION))('yaml', 'kind: Deployment');
  return [...text.matchAll(/name: (SERVICE_\w+), value: '?([^' ]+)'? \}/g)].map(([, ...pair]) => pair);
}

async function writeFiles(target, document, isCommonJs, files = FILES[document]) {
  const block = await readBlocks(document);
  await mkdir(target, { recursive: true });
  if (files.includes('src/app.module.ts')) {
    for (const file of ['app.controller.ts', 'app.service.ts']) {
      const text = await readFile(join(SCAFFOLD, file), 'utf8');
      await writeFile(join(target, file), isCommonJs ? asCommonJs(text) : text);
    }
  }
  for (const file of files) {
    const text = block('ts', `// ${file}\n`);
    const path = join(target, file.replace(/^src\//, ''));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, isCommonJs ? asCommonJs(text) : text);
  }
}

/** As for a CommonJS project: imports of its own files without the `.js`. */
function asCommonJs(text) {
  return text.replace(/( from '\.\.?\/.*)\.js';/g, "$1';");
}
