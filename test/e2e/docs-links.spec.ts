import { expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { GUIDES } from '../../lib/version.js';
import { readDocument, ROOT } from '../helpers/readme.js';

/** As GitHub makes them of headings. */
function anchorsOf(text: string): string[] {
  const headings = text.replace(/^```[^]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** Whether there is such a file, with such a heading. */
async function isThere(path: string, anchor?: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  return anchor === undefined || anchorsOf(await readFile(path, 'utf8')).includes(anchor);
}

it('every link of the documents leads to a file, and to a heading of it', async () => {
  const guides = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md'));
  const documents = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...guides.map((name) => `docs/${name}`)];
  const broken: string[] = [];
  let links = 0;
  for (const document of documents) {
    const path = join(ROOT, document);
    const text = (await readFile(path, 'utf8')).replace(/^```[^]*?^```$/gm, '');
    for (const [, target = ''] of text.matchAll(/\]\(((?!https?:)[^)\s]+)\)/g)) {
      links += 1;
      const [file = '', anchor] = target.split('#');
      const other = file === '' ? path : join(dirname(path), file);
      if (!(await isThere(other, anchor))) broken.push(`${relative(ROOT, path)}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
  expect(links).toBeGreaterThan(40);
});

it('every heading of a guide that a comment or a text of lib names is there', async () => {
  const files = (await readdir(join(ROOT, 'lib'), { recursive: true })).filter((name) =>
    name.endsWith('.ts'),
  );
  const broken: string[] = [];
  let named = 0;
  for (const file of files) {
    const text = await readFile(join(ROOT, 'lib', file), 'utf8');
    for (const [target, guide = '', anchor] of text.matchAll(
      /(?:docs|\$\{GUIDES\})\/([\w-]+\.md)(?:#([\w-]+))?/g,
    )) {
      named += 1;
      if (!(await isThere(join(ROOT, 'docs', guide), anchor))) broken.push(`lib/${file}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
  expect(named).toBeGreaterThan(40);
});

it('the address of the guides is that of this version, in the repository', async () => {
  const { repository, version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    repository: { url: string };
    version: string;
  };
  expect(GUIDES).toBe(`${repository.url.replace(/^git\+|\.git$/g, '')}/blob/v${version}/docs`);
});

it('every route of the guides that starts a session in the browser has a guard', async () => {
  const guides = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md'));
  const documents = await Promise.all(guides.map((name) => readDocument(`docs/${name}`)));
  const routes = documents
    .flatMap(({ fences }) => fences)
    .filter(({ text }) => text.includes('@Controller(') && text.includes('.connectParameters('));
  expect(routes.length).toBeGreaterThan(0);
  expect(routes.filter(({ text }) => !text.includes('@UseGuards('))).toEqual([]);
});

it('every file and folder of lib, and every spec, that CONTRIBUTING.md names is there', async () => {
  const text = (await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8')).replace(/^```[^]*?^```$/gm, '');
  const names = [...text.matchAll(/`(?!test\/)([a-z][\w-]*\/(?:[\w.*-]+\/?)+)`/g)].map(
    ([, name = '']) => name,
  );
  const missing = names.filter(
    (name) => !name.includes('*') && !existsSync(join(ROOT, 'lib', name)) && !existsSync(join(ROOT, name)),
  );
  expect(names.length).toBeGreaterThan(3);
  const specs = (await readdir(join(ROOT, 'test'), { recursive: true })).map((path) => basename(path));
  for (const [, name = ''] of text.matchAll(/`([\w-]+\.spec\.ts)`/g)) {
    if (!specs.includes(name)) missing.push(name);
  }
  expect(missing).toEqual([]);
});
