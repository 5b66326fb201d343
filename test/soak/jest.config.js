import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import base from '../../jest.config.js';

const tests = join(import.meta.dirname, '..');
const specs = readdirSync(tests, { recursive: true }).filter((file) => file.endsWith('.spec.ts'));
/** Whether a spec of `npm test` has tests that are longer here, by test/helpers/in-soak.ts. */
const isLonger = (file) => readFileSync(join(tests, file), 'utf8').includes('helpers/in-soak.js');

/**
 * The tests that take long: `npm run test:soak`. `npm test` runs short versions of some of them.
 *
 * @type {import('jest').Config}
 */
export default {
  ...base,
  rootDir: '../..',
  // These tests use much CPU time and measure under their own load, so two of them at once would disturb each other.
  maxWorkers: 1,
  globals: { SOAK: true },
  testMatch: [
    '<rootDir>/test/soak/**/*.spec.ts',
    ...specs.filter(isLonger).map((file) => `<rootDir>/test/${file.replaceAll('\\', '/')}`),
  ],
};
