import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readDocument, ROOT, type Snippets, writeSnippets } from '../helpers/readme.js';
import { programOf, typeProblems } from '../helpers/type-problems.js';

// One compilation for all documents: each loads Nest, axios and Node's types anew.
const documents = new Map<string, Snippets>();

beforeAll(async () => {
  const files = await readdir(join(ROOT, 'docs'));
  // Recipes are compiled in test/consumers, which installs their packages.
  const guides = files.filter((name) => name.endsWith('.md') && name !== 'recipes.md');
  for (const name of ['README.md', ...guides.map((guide) => `docs/${guide}`)]) {
    const { fences } = await readDocument(name);
    const snippets = await writeSnippets(fences, { name: `types-${basename(name, '.md')}`, stubs: true });
    if (snippets.files.length > 0) documents.set(name, snippets);
    else await snippets.remove();
  }
});
afterAll(() => Promise.all([...documents.values()].map((snippets) => snippets.remove())));

it('the TypeScript of every document compiles', () => {
  expect(documents.size).toBeGreaterThanOrEqual(9);
  const program = programOf(...documents.values());
  const problems = [...documents].map(([name, snippets]) => [name, typeProblems(snippets, program)]);
  expect(problems).toEqual([...documents.keys()].map((name) => [name, []]));
}, 120_000);
