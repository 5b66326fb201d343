import { describe, expect, it } from '@jest/globals';
import { Inject, Module, type ModuleMetadata } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import { BanksService, ServiceConfigurationError, ServiceModule } from 'nestjs-service';
import { stubService } from 'nestjs-service/testing';
import { readFileSync } from 'node:fs';
import { rejection } from '../../helpers/start-module.js';

class BankNames {
  constructor(@Inject(BanksService) readonly banks: BanksService) {}
}

const feature = (metadata: ModuleMetadata) => {
  @Module(metadata)
  class FeatureModule {}
  return FeatureModule;
};

const BARE: Record<string, ModuleMetadata> = {
  'on its own': { imports: [ServiceModule] },
  'beside ConfigModule, for a provider': {
    imports: [ConfigModule.forRoot({ ignoreEnvFile: true }), ServiceModule],
    providers: [BankNames],
  },
  'in a feature, for a provider': {
    imports: [feature({ imports: [ServiceModule], providers: [BankNames] })],
  },
  'in a feature, before a named module': {
    imports: [feature({ imports: [ServiceModule] }), ServiceModule.forRoot({ name: 'ksa' })],
  },
  'in a feature, beside a global module': {
    imports: [ServiceModule.forRoot({ isGlobal: true }), feature({ imports: [ServiceModule] })],
  },
};

describe('imports: [ServiceModule], without forRoot()', () => {
  for (const [where, metadata] of Object.entries(BARE)) {
    it(`says what to import: ${where}`, async () => {
      const stubbed = Test.createTestingModule(metadata);
      stubService(stubbed);
      for (const builder of [Test.createTestingModule(metadata), stubbed]) {
        const error = await rejection(builder.compile());
        expect(error).toBeInstanceOf(ServiceConfigurationError);
        expect((error as ServiceConfigurationError).faults).toEqual([
          {
            option: 'imports',
            variable: undefined,
            message: expect.stringContaining('ServiceModule.forRoot()'),
          },
        ]);
      }
    });
  }

  it('is exported as the class where forRoot() is imported', async () => {
    const imports = [feature({ imports: [ServiceModule.forRoot()], exports: [ServiceModule] })];
    const builder = Test.createTestingModule({ imports, providers: [BankNames] });
    stubService(builder, { banks: { list: () => ['Alpha Bank'] } });
    const module = await builder.compile();
    expect(await module.get(BankNames).banks.list()).toEqual(['Alpha Bank']);
    await module.close();
  });
});

it('the range of axios begins with that of a consumer in CI', () => {
  const of = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, { axios: string }>;
  const { axios: oldest } = of('test/consumers/cjs-nest11/package.json').dependencies;
  expect(of('package.json').peerDependencies.axios).toBe(`^${oldest}`);
});
