import base from '../../jest.config.js';

/**
 * What takes long: `npm run test:soak`. `npm test` has a short version of each.
 *
 * @type {import('jest').Config}
 */
export default {
  ...base,
  rootDir: '../..',
  // They compute, and measure what goes on under a load of their own: 1,000 replicas beside a fleet would fail it.
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
