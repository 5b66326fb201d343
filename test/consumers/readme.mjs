import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const README = join(import.meta.dirname, '../../README.md');
const APPLICATION = [
  'app.module.ts',
  'app.controller.ts',
  'app.controller.spec.ts',
  'app.module.spec.ts',
  'banks.spec.ts',
];

/** The blocks of README.md that tell a NestJS 11 application what to do. */
async function readBlocks() {
  const text = await readFile(README, 'utf8');
  const blocks = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language, body]) => ({
    language,
    body,
  }));
  return (language, part) => {
    const found = blocks.find((block) => block.language === language && block.body.includes(part));
    if (!found) throw new Error(`README.md has no ${language} block with ${part}`);
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
  for (const file of APPLICATION) {
    // In a CommonJS project, without the `.js` of its own files.
    const text = block('ts', `// ${file}\n`).replace(/( from '\.\/.*)\.js';/g, "$1';");
    await writeFile(join(snippets, file), text);
  }
  await cp(join(snippets, 'banks.spec.ts'), join(folder, 'test', 'banks.e2e-spec.ts'));

  const keys = JSON.parse(block('json', 'transformIgnorePatterns'));
  await change(join(folder, 'package.json'), (manifest) => Object.assign(manifest.jest, keys));
  await change(join(folder, 'test', 'jest-e2e.json'), (settings) => Object.assign(settings, keys));
}

async function change(path, how) {
  const content = JSON.parse(await readFile(path, 'utf8'));
  how(content);
  await writeFile(path, JSON.stringify(content, null, 2));
}
