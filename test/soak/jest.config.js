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
    '<rootDir>/test/e2e/{doctor,load,modes,page,redis-token-store,rotation,sample,simulator-command}.spec.ts',
    '<rootDir>/test/unit/{auth/store/fleet-requests,http/calls}.spec.ts',
  ],
};
