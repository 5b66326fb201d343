import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import tseslint from 'typescript-eslint';

// design.md "Floors": a file imports from its own floor or below, never up.
const FLOORS = [
  ['config', 'errors', 'exchange', 'telemetry'],
  ['auth', 'tls'],
  ['http'],
  ['customers', 'banks', 'link-sdk'],
  ['module', 'testing'],
];

const floorRules = FLOORS.flatMap((rooms, floor) => {
  const above = FLOORS.slice(floor + 1).flat();
  if (above.length === 0) return [];
  return rooms.map((room) => ({
    files: [`lib/${room}/**/*.ts`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: above.flatMap((name) => [`../${name}/*`, `../../${name}/*`]),
              message: `lib/${room} stands below that floor.`,
            },
            {
              group: ['../index.js', '../service.module.js'],
              message: 'Import the file itself, not the face.',
            },
          ],
        },
      ],
    },
  }));
});

const JAVASCRIPT = ['**/*.js', '**/*.mjs', '**/*.cjs'];

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
