import { afterAll, describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { serviceErrors, ServiceSimulator, ServiceStub } from 'nestjs-service/testing';
import { readDocument, ROOT, writeSnippets } from '../helpers/readme.js';

const document = await readDocument('docs/testing.md');
const snippets = await writeSnippets(document.fences, { name: 'testing' });
const specs = snippets.files.filter((file) => /spec\.ts$/.test(file));
// Its tests of a host are tests of this file.
for (const file of specs) await import(file);

/** The keys of an interface, as its source has them. */
async function keysOf(file: string, name: string): Promise<string[]> {
  const source = await readFile(join(ROOT, 'lib/testing', file), 'utf8');
  const body = new RegExp(`^export interface ${name} \\{\\n([^]*?)^\\}`, 'm').exec(source)?.[1] ?? '';
  const keys = [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, key = '']) => key);
  expect(keys.length).toBeGreaterThan(3);
  return keys;
}

/** Those that no piece of code in a section names. */
function unnamed(heading: string, names: string[]): string[] {
  const section = document.text.split(`\n### ${heading}\n`)[1]?.split('\n### ')[0] ?? '';
  const code = [...section.matchAll(/`([^`\n]+)`/g)].map(([, text = '']) => text).join('\n');
  return names.filter((name) => !new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(code));
}

describe('docs/testing.md', () => {
  afterAll(() => snippets.remove());

  it('names every error, and every member of the stub', () => {
    const names = [
      ...Object.keys(serviceErrors).map((name) => `\`${name}(`),
      ...['`calls`', '`callsOf(', '`use(', '`reset('],
    ];
    expect(names.filter((text) => !document.text.includes(text))).toEqual([]);
    const members = Object.getOwnPropertyNames(ServiceStub.prototype);
    expect(members).toEqual(expect.arrayContaining(['calls', 'callsOf', 'use', 'reset']));
  });

  it('names methods and options that the simulator has', async () => {
    const members = Object.getOwnPropertyNames(ServiceSimulator.prototype);
    const section = document.text.split('## The simulator\n')[1]?.replace(/^```[^]*?^```$/gm, '') ?? '';
    const named = [...section.matchAll(/`(\w+)\(/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(12);
    expect(named.filter((name) => !members.includes(name))).toEqual(['useValue']);
    const [, options = ''] = /start\(\{ (.*), \.\.\. \}\)/.exec(section) ?? [];
    expect(await keysOf('simulator.options.ts', 'SimulatorOptions')).toEqual(
      expect.arrayContaining(options.split(', ')),
    );
  });

  it('names each key of a mode and of a rule, and each fault', async () => {
    expect(unnamed('Modes', await keysOf('module-options.ts', 'SimulatorModeOptions'))).toEqual([]);
    expect(unnamed('Failures', await keysOf('faults.ts', 'FaultRule'))).toEqual([]);
    const source = await readFile(join(ROOT, 'lib/testing/faults.ts'), 'utf8');
    const faults = [...source.matchAll(/^ {2}\| (?:'([\w-]+)'|\{ (\w+))/gm)].map(
      ([, name, key]) => name ?? key ?? '',
    );
    expect(faults).toHaveLength(13);
    expect(unnamed('Failures', faults)).toEqual([]);
  });
});
