import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type DynamicModule, Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { BanksService, getServiceOptionsToken, getServiceToken, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';

@Injectable()
class Vault {
  read(): never {
    throw new Error('The vault was asked');
  }
}

@Module({
  imports: [
    ServiceModule.forRoot(),
    ServiceModule.forRootAsync({
      name: 'ksa',
      extraProviders: [Vault],
      inject: [Vault],
      useFactory: (vault: Vault) => vault.read(),
    }),
  ],
})
class AppModule {}

describe("Nest's overrideProvider", () => {
  let simulators: ServiceSimulator[];
  const open: TestingModule[] = [];

  beforeAll(async () => {
    simulators = await Promise.all([ServiceSimulator.start(), ServiceSimulator.start()]);
  });
  afterEach(async () => {
    for (const module of open.splice(0)) await module.close();
    for (const simulator of simulators) simulator.clearRequests();
  });
  afterAll(async () => {
    for (const simulator of simulators) await simulator.stop();
  });

  const builder = () => Test.createTestingModule({ imports: [AppModule] });

  it('gives each module the options of a test, and its factory is not called', async () => {
    const [first, second] = simulators;
    const module = await builder()
      .overrideProvider(getServiceOptionsToken())
      .useValue(first.moduleOptions())
      .overrideProvider(getServiceOptionsToken('ksa'))
      .useFactory({ factory: () => second.moduleOptions({ environment: 'sandbox' }) })
      .compile();
    open.push(await module.init());

    await module.get(BanksService).list();
    await module.get<BanksService>(getServiceToken(BanksService, 'ksa'), { strict: false }).list();
    await module.get(BanksService).list();
    expect(first.requests.map(({ path, face }) => [path, face])).toEqual([
      ['/banks/v1', 'base'],
      ['/banks/v1', 'base'],
    ]);
    expect(second.requests.map(({ path, face }) => [path, face])).toEqual([['/banks/v1', 'sandbox']]);
  });

  const messageOf = (imports: DynamicModule[], overridden: unknown, value: unknown): Promise<string> =>
    Test.createTestingModule({ imports })
      .overrideProvider(overridden)
      .useValue(value)
      .compile()
      .then(String, ({ message }: Error) => message);

  it('of a service alone fails, and the first sentence says what a test needs', async () => {
    const banks = { list: () => [] };
    expect(await messageOf([ServiceModule.forRoot()], BanksService, banks)).toMatch(
      /^ServiceModule found no SERVICE_\* variable; a test needs none with stubService\(builder\), or with overrideProvider\(getServiceOptionsToken\(\)\)\.useValue\(options\): https:\S+\/docs\/testing\.md#overrideprovider\. /,
    );
    const named = ServiceModule.forRoot({ name: 'ksa' });
    expect(await messageOf([named], getServiceToken(BanksService, 'ksa'), banks)).toMatch(
      /^ServiceModule:ksa found no SERVICE_KSA_\* variable; .*overrideProvider\(getServiceOptionsToken\('ksa'\)\)/,
    );
  });

  it('with what are no options says what it got', async () => {
    const message = await messageOf([ServiceModule.forRoot()], getServiceOptionsToken(), 'options');
    expect(message).toMatch(/returned no object/);
  });
});
