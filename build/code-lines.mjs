// Prints the code lines and files of the core by folder: how much there is to read. It checks nothing (CONTRIBUTING.md, "How the
// code stays small").
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const LIB = join(import.meta.dirname, '../lib');
/** Entry points of their own, which the core does not need. */
const OTHERS = ['testing', 'terminus', 'redis', 'cli', 'schematics'];

/** A code line is not blank and no line of a comment. */
const isCode = (line) => !/^\s*($|\/\/|\/\*|\*)/.test(line);

const entries = await readdir(LIB, { recursive: true, withFileTypes: true });
const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.ts'));
const folders = new Map();
for (const { parentPath, name } of files) {
  const path = join(parentPath, name);
  const [folder] = path.slice(LIB.length + 1).split(/[/\\]/);
  if (OTHERS.includes(folder)) continue;
  const key = folder === name ? '.' : folder;
  const lines = (await readFile(path, 'utf8')).split('\n').filter(isCode).length;
  const found = folders.get(key) ?? { files: 0, lines: 0 };
  folders.set(key, { files: found.files + 1, lines: found.lines + lines });
}

const rows = [...folders].sort(([, one], [, other]) => other.lines - one.lines);
const sum = (key) => rows.reduce((total, [, counts]) => total + counts[key], 0);
for (const [name, counts] of [...rows, ['core', { files: sum('files'), lines: sum('lines') }]])
  console.log(
    `${name.padEnd(10)} ${String(counts.lines).padStart(5)} code lines, ${String(counts.files).padStart(3)} files`,
  );
