import base from '../../jest.config.js';

/**
 * What takes long: `npm run test:soak`. `npm test` has a short version of each.
 *
 * @type {import('jest').Config}
 */
export default { ...base, rootDir: '../..', testMatch: ['<rootDir>/test/soak/**/*.spec.ts'] };
