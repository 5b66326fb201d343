import base from '../../jest.config.js';

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
    '<rootDir>/test/e2e/answers.spec.ts',
    '<rootDir>/test/e2e/load.spec.ts',
    '<rootDir>/test/e2e/modes.spec.ts',
    '<rootDir>/test/e2e/no-secret-leaks.spec.ts',
    '<rootDir>/test/e2e/page.spec.ts',
    '<rootDir>/test/e2e/token-store.spec.ts',
    '<rootDir>/test/e2e/rotation.spec.ts',
    '<rootDir>/test/e2e/sample.spec.ts',
    '<rootDir>/test/e2e/simulator-command.spec.ts',
    '<rootDir>/test/unit/auth/shared-store.spec.ts',
    '<rootDir>/test/unit/http/calls.spec.ts',
  ],
};
