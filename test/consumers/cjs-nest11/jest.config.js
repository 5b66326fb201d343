/** What a CommonJS host's own jest needs: nestjs-service, and jose under its simulator, are ESM only. */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.spec.ts'],
  transform: { '^.+\\.[jt]s$': ['ts-jest', { tsconfig: 'tsconfig.jest.json' }] },
  transformIgnorePatterns: ['/node_modules/(?!(nestjs-service|jose)/)'],
};
