import { afterAll, describe, expect, it } from '@jest/globals';
import { basename } from 'node:path';
import { serviceErrors, ServiceStub } from 'nestjs-service/testing';
import { DOUBLED } from '../../lib/testing/doubles/doubles.js';
import { readDocument, writeSnippets } from '../helpers/readme.js';

const document = await readDocument('docs/testing.md');
const snippets = await writeSnippets(document.fences, { name: 'testing' });
const specs = snippets.files.filter((file) => file.endsWith('.spec.ts'));
// Its tests of a host are tests of this file.
for (const file of specs) await import(file);

describe('docs/testing.md', () => {
  afterAll(() => snippets.remove());

  it('has the files that are tested here', () => {
    expect(specs.map((file) => basename(file))).toEqual([
      'host.module.spec.ts',
      'bank-names.spec.ts',
      'named.spec.ts',
    ]);
  });

  it('names every double, every error, and every member of the stub', () => {
    const methods = Object.entries(DOUBLED).flatMap(([service, names]) =>
      names.map((name) => (document.text.includes(`\`${service}.${name}\``) ? '' : `\`${name}\``)),
    );
    const missing = [
      ...methods,
      ...Object.keys(serviceErrors).map((name) => `\`${name}(`),
      ...['`calls`', '`callsOf(', '`use(', '`reset('],
    ].filter((text) => !document.text.includes(text));
    expect(missing).toEqual([]);
    const members = Object.getOwnPropertyNames(ServiceStub.prototype);
    expect(members).toEqual(expect.arrayContaining(['calls', 'callsOf', 'use', 'reset']));
  });
});
