import { beforeAll, describe, expect, it } from '@jest/globals';
import { runSource } from '../helpers/source-process.js';

/** Host applications in which one function never settles, by the name of this function. If the host starts, `then` runs with it. */
const HOSTS: Record<string, { imports: string; then?: string; fails: RegExp }> = {
  'the tls function': {
    imports: `ServiceModule.forRoot({ urls, appToken: 'token', authentication: 'mtls', tls: never })`,
    fails: /- tls: the function failed \(no response within 30 s\)/,
  },
  'the function of the client secret': {
    imports: `ServiceModule.forRoot({ urls, authentication: 'oauth', oauth })`,
    then: 'await app.get(ServiceAuthService).getApiToken().finally(() => app.close());',
    fails: /oauth\.clientSecret.*longer than 8 s/,
  },
  'check() of the token store': {
    imports: `ServiceModule.forRoot({ urls, appToken: 'token', tokenStore: { get: never, set: never, delete: never, check: never } })`,
    fails: /- tokenStore: its method check\(\) failed, or took longer than 10 s/,
  },
  'the tls function at a reload': {
    imports: `ServiceModule.forRoot({ urls, appToken: 'token', tls: thenNever })`,
    then: 'await new Promise((resolve) => setTimeout(resolve, 70_000)); await app.get(ServiceAuthService).reloadCertificate(); await app.close(); throw new Error("read again");',
    fails: /^read again$/,
  },
  'a ConfigModule that needs ServiceModule itself': {
    imports: `ServiceModule.forRoot({ urls, appToken: 'token', isGlobal: true }), ConfigModule.forRoot({ ignoreEnvFile: true }).then(
      (module) => ({
        ...module,
        providers: [
          ...module.providers,
          { provide: 'CONFIGURATION_LOADER', inject: [ServiceAuthService], useFactory: never },
        ],
      }),
    )`,
    fails: /ConfigModule: has not finished loading/,
  },
  'useFactory of forRootAsync': {
    imports: `ServiceModule.forRootAsync({ useFactory: never })`,
    fails: /forRootAsync: the options factory has not finished within 60 s/,
  },
  'createServiceOptions()': {
    imports: `ServiceModule.forRootAsync({ useClass: class { createServiceOptions = never; } })`,
    fails: /forRootAsync: the options factory has not finished within 60 s/,
  },
  'a load function of ConfigModule': {
    imports: `ServiceModule.forRoot({ urls, appToken: 'token' }), ConfigModule.forRoot({ ignoreEnvFile: true, load: [never] })`,
    fails: /ConfigModule: has not finished loading within 60 s/,
  },
};

/** Starts the hosts one after another. Prints how each host ended, and how many timers it left. */
const program = `
  const { ServiceModule, ServiceAuthService } = await import(lib + '/index.ts');
  const { ConfigModule } = await import('@nestjs/config');
  const { NestFactory } = await import('@nestjs/core');
  const never = () => new Promise(() => undefined);
  let readings = 0;
  const thenNever = () => (++readings === 1 ? Promise.resolve({}) : never());
  const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: never };
  const urls = { sandboxUrl: 'https://api.invalid', sandboxMtlsUrl: 'https://api.invalid', sandboxAuthUrl: 'https://auth.invalid' };
  async function end(name, imports, then = () => undefined) {
    class Host {}
    let message;
    try {
      await then(await NestFactory.createApplicationContext({ module: Host, imports: imports() }, { logger: false, abortOnError: false }));
    } catch (error) {
      message = error.message;
    }
    const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout');
    console.log(JSON.stringify({ name, message, timers }));
  }
  ${Object.entries(HOSTS)
    .map(
      ([name, { imports, then = '' }]) =>
        `await end(${JSON.stringify(name)}, () => [${imports}], async (app) => { ${then} });`,
    )
    .join('\n')}
  process.exitCode = 7;`;

describe('functions of a host that never settle, in a process that nothing else keeps running', () => {
  let run: Awaited<ReturnType<typeof runSource>>;

  beforeAll(async () => {
    run = await runSource(program);
  });

  it.each(Object.entries(HOSTS))(
    'a start or call that waits for %s ends in time and leaves no timer',
    (name, { fails }) => {
      const ends = run.output
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { name: string });
      // A timer that one host leaves would keep the process running while the next host is tested.
      expect(ends.find((end) => end.name === name)).toEqual({
        name,
        message: expect.stringMatching(fails),
        timers: [],
      });
    },
  );

  it('the process exits by itself after all these hosts have ended', () => {
    expect(run.code).toBe(7);
  });
});
