import { url as inspectorUrl } from 'node:inspector';
import { availableParallelism } from 'node:os';

// Node 20 parses this file, of perhaps 140 roots, in each process and for each identity. No test needs a public root, and
// public-roots.spec.ts has its own file.
delete process.env.NODE_EXTRA_CA_CERTS;

/** @type {import('jest').Config} */
export default {
  // Not by <rootDir>, which Stryker does not know.
  testEnvironment: `${import.meta.dirname}/test/helpers/node-environment.mjs`,
  testSequencer: `${import.meta.dirname}/test/helpers/e2e-first.mjs`,
  // Tests wait more than they compute: two workers for each core.
  maxWorkers: 2 * availableParallelism(),
  // Generous, for machines that are busy with other things: no test waits for it.
  testTimeout: 60_000,
  // As generous: without it a worker that ends has half a second, and Jest takes a slow one for one that a test keeps.
  workerGracefulExitTimeout: 10_000,
  setupFilesAfterEnv: ['<rootDir>/test/helpers/quiet.ts'],
  testMatch: ['<rootDir>/test/{unit,e2e}/**/*.spec.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    '^(\\.{1,2}/.*)\\.js$': ['$1.ts', '$1.js'],
    // One file each, which the packages have too, in place of 320 and 226 that each spec file would load anew.
    '^class-validator$': '<rootDir>/node_modules/class-validator/bundles/class-validator.umd.js',
    '^rxjs$': '<rootDir>/node_modules/rxjs/dist/bundles/rxjs.umd.js',
    '^rxjs/operators$': '<rootDir>/test/helpers/rxjs-operators.cjs',
    '^nestjs-service$': '<rootDir>/lib/index.ts',
    '^nestjs-service/redis$': '<rootDir>/lib/redis/index.ts',
    '^nestjs-service/terminus$': '<rootDir>/lib/terminus/index.ts',
    '^nestjs-service/testing$': '<rootDir>/lib/testing/index.ts',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist', '<rootDir>/test/consumers'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        // Only a debugger reads those in the code; Jest has them in files of their own.
        sourceMaps: inspectorUrl() === undefined ? true : 'inline',
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          target: 'es2022',
        },
      },
    ],
  },
};
