import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const GETTING_STARTED = 'docs/getting-started.md';
const TESTING = 'docs/testing.md';
/** Of each guide, the tests and the application that they test. */
const FILES = {
  [GETTING_STARTED]: ['app.module.ts', 'app.controller.ts', 'app.controller.spec.ts', 'app.module.spec.ts'],
  [TESTING]: [
    'host.module.ts',
    'host.module.spec.ts',
    'bank-names.spec.ts',
    'named.spec.ts',
    'banks.spec.ts',
  ],
};

/** The blocks of a document; the function returned finds one by its language and a part of it. */
async function readBlocks(document) {
  const text = await readFile(join(ROOT, document), 'utf8');
  const blocks = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language, body]) => ({
    language,
    body,
  }));
  return (language, part) => {
    const found = blocks.find((block) => block.language === language && block.body.includes(part));
    if (!found) throw new Error(`${document} has no ${language} block with ${part}`);
    return found.body;
  };
}

/** The arguments of npm that docs/getting-started.md gives for NestJS 11, with the packed tarball as the package. */
export async function installArguments(tarball) {
  const block = await readBlocks(GETTING_STARTED);
  const [, , ...packages] = block('sh', '@nestjs/config@4').trim().split(' ');
  return packages.map((name) => (name === 'nestjs-service' ? tarball : name));
}

/** Changes a scaffold as docs/getting-started.md says: adds its snippets. */
export async function followGettingStarted(folder) {
  await writeFiles(join(folder, 'src', 'getting-started'), GETTING_STARTED, true);
  const test = (await readBlocks(TESTING))('ts', '// banks.spec.ts\n');
  await writeFile(join(folder, 'test', 'banks.e2e-spec.ts'), test);
}

/** Puts the tests of docs/testing.md into src/testing. */
export async function followTesting(folder) {
  const { type } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  await writeFiles(join(folder, 'src', 'testing'), TESTING, type !== 'module');
}

async function writeFiles(target, document, isCommonJs) {
  const block = await readBlocks(document);
  await mkdir(target, { recursive: true });
  for (const file of FILES[document]) {
    const text = block('ts', `// ${file}\n`);
    // In a CommonJS project, without the `.js` of its own files.
    await writeFile(join(target, file), isCommonJs ? text.replace(/( from '\.\/.*)\.js';/g, "$1';") : text);
  }
}
