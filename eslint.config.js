import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import tseslint from 'typescript-eslint';
import { readdirSync } from 'node:fs';

// The layers of lib/, from the lowest. A file imports from its own layer or a lower one.
const LAYERS = [
  ['time'],
  ['errors'],
  ['telemetry'],
  ['exchange'],
  ['config'],
  ['tls'],
  ['auth'],
  ['http'],
  ['customers', 'banks', 'link-sdk', 'webhooks', 'answers'],
  ['engine'],
  ['module'],
];
// Subpaths of the package. A host may not use them, so no layer imports from them.
const SUBPATHS = ['testing', 'terminus', 'redis', 'cli', 'schematics'];

const folders = readdirSync(`${import.meta.dirname}/lib`, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const unknown = folders.filter((folder) => ![...LAYERS, SUBPATHS].flat().includes(folder));
if (unknown.length > 0) {
  throw new Error(
    `eslint.config.js: add ${unknown.join(', ')} (folders of lib) to LAYERS, in or above the highest layer that its ` +
      'files import from.',
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
      {
        selector: 'ImportExpression',
        message: 'Use an import declaration.',
      },
    ],
  },
});

const layerRules = [
  importsNothingFrom(['lib/*.ts'], SUBPATHS, 'The package works without its subpaths.'),
  {
    files: ['lib/service-token.ts', 'lib/version.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(\\.|nestjs-service)',
              message: 'Every layer imports these files: they import no other.',
            },
          ],
        },
      ],
    },
  },
  ...LAYERS.map((names, layer) =>
    importsNothingFrom(
      names.map((folder) => `lib/${folder}/**/*.ts`),
      [...LAYERS.slice(layer + 1).flat(), ...SUBPATHS],
      `A file in the layer of ${names.join(', ')} imports from its own layer or a lower one.`,
    ),
  ),
];

const JAVASCRIPT = ['**/*.js', '**/*.mjs', '**/*.cjs'];

const BROWSER_SCRIPTS = ['sample/playground/link-sdk.js', 'sample/page/public/*.js'];

const BROWSER_GLOBALS = Object.fromEntries(
  ['document', 'CSSStyleSheet', 'EventSource', 'Option', 'Service'].map((name) => [name, 'readonly']),
);

const NODE_GLOBALS = Object.fromEntries(
  Object.getOwnPropertyNames(globalThis).map((name) => [name, 'readonly']),
);

export default tseslint.config(
  {
    ignores: [
      'dist',
      'dist-sample',
      'dist-docs',
      'coverage',
      'test/consumers/*/node_modules',
      'test/bench/.build',
      'test/.readme',
    ],
  },
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
      // An interface that only extends a mapped type: the reference and editors then show its properties.
      '@typescript-eslint/no-empty-object-type': ['error', { allowInterfaces: 'with-single-extends' }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  ...layerRules,
  {
    files: ['sample/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: '(^|/)(lib|test|build|dist)/', message: 'The sample can be copied out.' }] },
      ],
    },
  },
  { files: JAVASCRIPT, ...tseslint.configs.disableTypeChecked },
  { files: JAVASCRIPT, languageOptions: { globals: NODE_GLOBALS } },
  { files: BROWSER_SCRIPTS, languageOptions: { sourceType: 'script', globals: BROWSER_GLOBALS } },
  {
    files: ['**/*.cjs', 'test/consumers/cjs-*/*.js'],
    languageOptions: { sourceType: 'commonjs', globals: { module: 'writable', require: 'readonly' } },
    rules: { '@typescript-eslint/no-require-imports': 'off' },
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
