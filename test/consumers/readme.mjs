import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/** The tests of docs/testing.md, and the application that they test. */
const TESTING = ['host.module.ts', 'host.module.spec.ts', 'bank-names.spec.ts', 'named.spec.ts'];
const APPLICATION = [
  'app.module.ts',
  'app.controller.ts',
  'app.controller.spec.ts',
  'app.module.spec.ts',
  'banks.spec.ts',
];

/** The blocks of a document; the function returned finds one by its language and a part of it. */
async function readBlocks(document = 'README.md') {
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

/** The arguments of npm that README.md gives for NestJS 11, with the packed tarball as the package. */
export async function installArguments(tarball) {
  const block = await readBlocks();
  const [, , ...packages] = block('sh', '@nestjs/config@4').trim().split(' ');
  return packages.map((name) => (name === 'nestjs-service' ? tarball : name));
}

/** Changes a scaffold as README.md says: adds the snippets in src/readme, and the keys of jest in both settings. */
export async function followReadme(folder) {
  const block = await readBlocks();
  const snippets = join(folder, 'src', 'readme');
  await mkdir(snippets, { recursive: true });
  await writeFiles(snippets, APPLICATION, block, true);
  await cp(join(snippets, 'banks.spec.ts'), join(folder, 'test', 'banks.e2e-spec.ts'));

  const keys = JSON.parse(block('json', 'transformIgnorePatterns'));
  await change(join(folder, 'package.json'), (manifest) => Object.assign(manifest.jest, keys));
  await change(join(folder, 'test', 'jest-e2e.json'), (settings) => Object.assign(settings, keys));
}

/** Puts the tests of docs/testing.md into src/testing. */
export async function followTesting(folder) {
  const target = join(folder, 'src', 'testing');
  await mkdir(target, { recursive: true });
  const { type } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  await writeFiles(target, TESTING, await readBlocks('docs/testing.md'), type !== 'module');
}

async function writeFiles(target, files, block, isCommonJs) {
  for (const file of files) {
    const text = block('ts', `// ${file}\n`);
    // In a CommonJS project, without the `.js` of its own files.
    await writeFile(join(target, file), isCommonJs ? text.replace(/( from '\.\/.*)\.js';/g, "$1';") : text);
  }
}

async function change(path, how) {
  const content = JSON.parse(await readFile(path, 'utf8'));
  how(content);
  await writeFile(path, JSON.stringify(content, null, 2));
}
