// The script `version` of npm: puts the version of package.json into lib/version.ts, and dates what is new in CHANGELOG.md,
// which keeps an empty "Unreleased".
import { readFileSync, writeFileSync } from 'node:fs';

const change = (file, how) => writeFileSync(file, how(readFileSync(file, 'utf8')));
const { npm_package_version: version } = process.env;
const today = new Date().toISOString().slice(0, 10);

change('CHANGELOG.md', (text) => {
  if (!/^## \[Unreleased\]\n\n(?!## )\S/m.test(text)) {
    throw new Error('CHANGELOG.md has nothing below "## [Unreleased]": say there what is new.');
  }
  return text.replace('## [Unreleased]\n', `$&\n## [${version}] - ${today}\n`);
});
// Also in the address of the guides.
change('lib/version.ts', (text) => text.replaceAll(/(?<=VERSION = '|\/blob\/v)[\d.a-z-]+/g, version));
