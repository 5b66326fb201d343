import base from '../../jest.config.js';

/**
 * What takes long: `npm run test:soak`. `npm test` has a short version of each.
 *
 * @type {import('jest').Config}
 */
export default {
  ...base,
  rootDir: '../..',
  globals: { SOAK: true },
  testMatch: [
    '<rootDir>/test/soak/**/*.spec.ts',
    '<rootDir>/test/e2e/{doctor,page}.spec.ts',
    '<rootDir>/test/unit/auth/store/fleet-requests.spec.ts',
  ],
};
