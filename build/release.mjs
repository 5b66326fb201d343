// Prepares a release: npm run release -- 1.2.3
//
// Sets the version in package.json, lib/version.ts and CHANGELOG.md, which keeps an empty "Unreleased", commits and tags.
// It pushes nothing: the tag, once pushed, starts .github/workflows/release.yml, which tests and publishes.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const VERSION = 'lib/version.ts';
const UNRELEASED = '## [Unreleased]\n';

const run = (command, ...args) => execFileSync(command, args, { encoding: 'utf8' }).trim();

function prepare(version) {
  if (!/^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version)) {
    throw new Error('Usage: npm run release -- <version>, for example 1.2.3 or 1.3.0-beta.1');
  }
  if (run('git', 'status', '--porcelain') !== '')
    throw new Error('The working tree has changes: commit them first.');
  if (run('git', 'tag', '--list', `v${version}`) !== '')
    throw new Error(`There is a tag v${version} already.`);
  const changelog = readFileSync('CHANGELOG.md', 'utf8');
  const [, news] = changelog.split(UNRELEASED);
  if (!news || /^\s*(## |$)/.test(news)) {
    throw new Error('CHANGELOG.md has nothing below "## [Unreleased]": say there what is new.');
  }
  const today = new Date().toISOString().slice(0, 10);
  const released = `${UNRELEASED}\n## [${version}] - ${today}\n`;
  writeFileSync('CHANGELOG.md', changelog.replace(UNRELEASED, released));
  const source = readFileSync(VERSION, 'utf8');
  // Also in the address of the guides.
  const [, last] = /'([^']+)'/.exec(source);
  writeFileSync(VERSION, source.replaceAll(last, version));
  run('npm', 'version', version, '--no-git-tag-version', '--allow-same-version');
  run('git', 'commit', '--all', '--message', `Release ${version}`);
  run('git', 'tag', '--annotate', `v${version}`, '--message', `Release ${version}`);
  return `Tagged v${version}. To publish it: git push origin HEAD v${version}`;
}

try {
  console.log(prepare(process.argv[2] ?? ''));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
