import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import tseslint from 'typescript-eslint';
import { readdirSync } from 'node:fs';

// Floors of lib/, from the lowest: a file imports from its own floor or below, never from one above. Folders inside a room
// belong to its floor.
const FLOORS = [
  ['config', 'errors', 'exchange', 'telemetry'],
  ['tls'],
  ['auth'],
  ['http'],
  ['customers', 'banks', 'link-sdk'],
  ['module'],
];
// Subpaths of the package, which a host may leave out: no floor imports from them.
const DOORS = ['testing', 'terminus', 'redis', 'swagger', 'cli', 'schematics'];

const rooms = readdirSync(`${import.meta.dirname}/lib`, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const unknown = rooms.filter((room) => ![...FLOORS, DOORS].flat().includes(room));
if (unknown.length > 0) {
  throw new Error(
    `eslint.config.js: add ${unknown.join(', ')} (folders of lib) to FLOORS: on the floor of the highest folder that its ` +
      'files import from, or above it.',
  );
}

const importsNothingFrom = (files, names, message) => ({
  files,
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          { regex: `^(\\./|(\\.\\./)+)(${names.join('|')})/`, message },
          {
            regex: '^(\\.\\./)+(index|service\\.module)\\.js$|^nestjs-service(/|$)',
            message: 'Import from the file that defines it.',
          },
        ],
      },
    ],
    // The rule above does not see import().
    'no-restricted-syntax': [
      'error',
      { selector: 'ImportExpression', message: 'Import at the head of the file.' },
    ],
  },
});

const floorRules = [
  importsNothingFrom(['lib/*.ts'], DOORS, 'The package works without its doors.'),
  {
    files: ['lib/service-token.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { regex: '^(\\.|nestjs-service)', message: 'Each floor imports this file: it imports no other.' },
          ],
        },
      ],
    },
  },
  ...FLOORS.map((names, floor) =>
    importsNothingFrom(
      names.map((room) => `lib/${room}/**/*.ts`),
      [...FLOORS.slice(floor + 1).flat(), ...DOORS],
      `A file on the floor of ${names.join(', ')} imports from its own floor or below.`,
    ),
  ),
];

const JAVASCRIPT = ['**/*.js', '**/*.mjs', '**/*.cjs'];

const BROWSER_SCRIPTS = ['lib/testing/link-sdk/link-sdk.js', 'sample/page/public/*.js'];

const BROWSER_GLOBALS = Object.fromEntries(
  ['document', 'CSSStyleSheet', 'EventSource', 'Service'].map((name) => [name, 'readonly']),
);

const NODE_GLOBALS = Object.fromEntries(
  Object.getOwnPropertyNames(globalThis).map((name) => [name, 'readonly']),
);

export default tseslint.config(
  { ignores: ['dist', 'dist-sample', 'coverage', 'test/consumers/*/node_modules', 'test/bench/.build'] },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['*.js'] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  ...floorRules,
  { files: JAVASCRIPT, ...tseslint.configs.disableTypeChecked },
  { files: JAVASCRIPT, languageOptions: { globals: NODE_GLOBALS } },
  { files: BROWSER_SCRIPTS, languageOptions: { sourceType: 'script', globals: BROWSER_GLOBALS } },
  {
    files: ['**/*.cjs', 'test/consumers/cjs-*/*.js'],
    languageOptions: { sourceType: 'commonjs', globals: { module: 'writable' } },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  prettier,
);
