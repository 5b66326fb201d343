import { Injectable, Module, type DynamicModule, type Type } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import {
  BanksService,
  InjectService,
  serviceConfig,
  ServiceModule,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { run } from '../run.js';

type Imports = (Type | DynamicModule | Promise<DynamicModule>)[];
type Options = ServiceModuleOptions;

const SAME = { ignoreEnvFile: true, cache: false };
const later = <T>(value: T): Promise<T> => new Promise((resolve) => setTimeout(resolve, 5, value));
/** What a vault gives the host, under a name of its own. */
const vault = (options: Options) => () => later({ vault: options });
const fromVault = {
  inject: [ConfigService],
  useFactory: (config: ConfigService): Options => config.getOrThrow<Options>('vault'),
};

@Module({})
class FeatureModule {}
/** A feature that has all it needs, in a root module that has nothing. */
const feature = (...imports: Imports): Imports => [{ module: FeatureModule, imports }];

/** Where ConfigModule is, and how the options come out of it. */
const cases = (options: Options): Record<string, Imports> => ({
  'no ConfigModule': [ServiceModule.forRoot(options)],
  'global, imported last': [
    ServiceModule.forRootAsync(fromVault),
    ConfigModule.forRoot({ ...SAME, isGlobal: true, load: [vault(options)] }),
  ],
  'beside it': [
    ConfigModule.forRoot({ ...SAME, load: [vault(options)] }),
    ServiceModule.forRootAsync(fromVault),
  ],
  'imported by it': [
    ServiceModule.forRootAsync({
      imports: [ConfigModule.forRoot({ ...SAME, load: [vault(options)] })],
      ...fromVault,
    }),
  ],
  'in a feature module only': feature(
    ConfigModule.forRoot({ ...SAME, load: [vault(options)] }),
    ServiceModule.forRootAsync(fromVault),
  ),
});

/** The same for what forRoot() reads: the variables of the process, and the namespace `service`. */
const casesOfVariables: Record<string, () => Imports> = {
  'no ConfigModule, variables': () => [ServiceModule.forRoot()],
  'ConfigModule, variables': () => [ServiceModule.forRoot(), ConfigModule.forRoot(SAME)],
  'the namespace in a feature module': () =>
    feature(ConfigModule.forRoot({ ...SAME, load: [serviceConfig] }), ServiceModule.forRoot()),
};

async function callsOf(simulator: ServiceSimulator, imports: Imports): Promise<string[]> {
  @Module({ imports })
  class RootModule {}
  const app = await NestFactory.createApplicationContext(RootModule, { logger: false, abortOnError: false });
  try {
    simulator.clearRequests();
    await app.get(BanksService, { strict: false }).list();
    return simulator.apiRequests.map(({ face, status }) => `${face} ${status}`);
  } finally {
    await app.close();
  }
}

@Injectable()
class HomeClient {
  constructor(@InjectService(BanksService, 'home') readonly banks: BanksService) {}
}

@Injectable()
class AbroadClient {
  constructor(@InjectService(BanksService, 'abroad') readonly banks: BanksService) {}
}

/** Two features, each with a service of its own: by code, and by the variables of its name. */
async function twoFeatures(simulator: ServiceSimulator): Promise<void> {
  const home = simulator.moduleOptions({ environment: 'production', authentication: 'mtls' });
  Object.assign(process.env, simulator.env({ name: 'abroad', environment: 'sandbox' }));
  @Module({ imports: [ServiceModule.forRoot({ ...home, name: 'home' })], providers: [HomeClient] })
  class HomeModule {}
  @Module({ imports: [ServiceModule.forRoot({ name: 'abroad' })], providers: [AbroadClient] })
  class AbroadModule {}
  @Module({ imports: [HomeModule, AbroadModule] })
  class RootModule {}
  const app = await NestFactory.createApplicationContext(RootModule, { logger: false, abortOnError: false });
  simulator.clearRequests();
  for (const client of [HomeClient, AbroadClient]) await app.get(client, { strict: false }).banks.list();
  assert.deepEqual(
    simulator.apiRequests.map(({ face }) => face),
    ['base', 'sandbox'],
  );
  await app.close();
}

async function main(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  try {
    const mode = { environment: 'production', authentication: 'mtls' } as const;
    for (const [name, imports] of Object.entries(cases(simulator.moduleOptions(mode)))) {
      assert.deepEqual(await callsOf(simulator, imports), ['base 200'], name);
    }
    await twoFeatures(simulator);
    Object.assign(process.env, simulator.env(mode));
    for (const [name, imports] of Object.entries(casesOfVariables)) {
      assert.deepEqual(await callsOf(simulator, imports()), ['base 200'], name);
    }
  } finally {
    await simulator.stop();
  }
}

run(main);
