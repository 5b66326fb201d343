import { describe, expect, it } from '@jest/globals';
import { type ModulesContainer } from '@nestjs/core';
import { SERVICE } from '../../../lib/module/definition.js';
import { MODULE_NAME, refuseSharedVariables, type ModuleName } from '../../../lib/module/namesakes.js';
import { type Service } from '../../../lib/engine/create-service.js';
import { requestScopeCheck, serviceHooks } from '../../../lib/module/providers.js';

describe('The modules of an application', () => {
  /** One for each name, and one of the host. */
  const application = (...names: (string | undefined)[]) => {
    const own = names.map((name): ModuleName => ({ name }));
    const modules = [new Map(), ...own.map((instance) => new Map([[MODULE_NAME, { instance }]]))];
    const container = new Map(modules.map((providers, key) => [key, { providers }]));
    return { own, container: container as unknown as ModulesContainer };
  };

  it.each([
    ['ksa', 'ksa-sandbox', /^'ksa' and 'ksa-sandbox' would both read SERVICE_KSA_SANDBOX_/],
    ['a-b', 'a_b', /^'a-b' and 'a_b' would both read SERVICE_A_B_/],
    ['ksa', 'uae', undefined],
    ['ksa', undefined, undefined],
    ['ksa', 'ksa', undefined],
  ])('named %s and %s: whether they share variables', (first, second, message) => {
    const { own, container } = application(first, second);
    const refuse = (): void => refuseSharedVariables(own[0], container);
    if (!message) return expect(refuse).not.toThrow();
    const fault = { option: 'name', message: expect.stringMatching(message) };
    expect(refuse).toThrow(expect.objectContaining({ faults: [expect.objectContaining(fault)] }));
  });
});

describe('Options that depend on a request', () => {
  const own: ModuleName = { name: 'ksa' };
  const moduleOf = (instance: ModuleName, isStatic?: boolean) => ({
    providers: new Map<unknown, unknown>([
      [MODULE_NAME, { instance }],
      ...(isStatic === undefined ? [] : [[SERVICE, { isDependencyTreeStatic: () => isStatic }] as const]),
    ]),
  });
  const check = (...modules: object[]): void =>
    requestScopeCheck(
      own,
      new Map(modules.map((each, key) => [key, each])) as unknown as ModulesContainer,
    ).onModuleInit();

  it('are refused for the module that has them', () => {
    const fault = { option: 'forRootAsync', message: expect.stringMatching(/depend on a request/) };
    const error = expect.objectContaining({ faults: [expect.objectContaining(fault)] });
    expect(() => check({ providers: new Map() }, moduleOf({}, true), moduleOf(own, false))).toThrow(error);
    expect(() => check(moduleOf({}, false), moduleOf(own, true))).not.toThrow();
    expect(() => check(moduleOf(own))).not.toThrow();
    expect(() => check()).not.toThrow();
  });
});

it('a module of a name that others have too is reported once, by the first', async () => {
  const lines: string[] = [];
  const warn = (line: string): void => void lines.push(line);
  const service = { log: { warn }, start: async () => undefined } as unknown as Service;
  const own = [{ name: 'ksa' }, { name: 'ksa' }, {}, { name: 'uae' }, {}, {}];
  const modules = new Map(
    own.map((instance, key) => [key, { providers: new Map([[MODULE_NAME, { instance }]]) }]),
  );
  for (const each of own) {
    await serviceHooks(service, each, modules as unknown as ModulesContainer).onApplicationBootstrap();
  }
  expect(lines).toEqual([
    expect.stringMatching(/^2 ServiceModules named 'ksa'/),
    expect.stringMatching(/^3 ServiceModules without a name.*isGlobal/),
  ]);
});
