import { describe, expect, it } from '@jest/globals';
import { runSource } from '../helpers/source-process.js';

/** A host whose only module is ours; prints how its start, or its first token, ended. */
const host = (options: string, then = '') => `
  const { ServiceModule, ServiceAuthService } = await import(lib + '/index.ts');
  const { ConfigModule } = await import('@nestjs/config');
  const { NestFactory } = await import('@nestjs/core');
  const never = () => new Promise(() => undefined);
  const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: never };
  const urls = { sandboxUrl: 'https://api.invalid', sandboxMtlsUrl: 'https://api.invalid', sandboxAuthUrl: 'https://auth.invalid' };
  class Host {}
  const load = ConfigModule.forRoot({ ignoreEnvFile: true, load: [never] });
  try {
    const app = await NestFactory.createApplicationContext(
      { module: Host, imports: [${options}] },
      { logger: false, abortOnError: false },
    );
    ${then}
  } catch (error) {
    console.log('it ends with', error.message);
    process.exitCode = 7;
  }`;

describe('A start or a call that waits for a function that never ends fails with a message, also where nothing else keeps the process running:', () => {
  it('the tls function', async () => {
    const { code, output } = await runSource(
      host(`ServiceModule.forRoot({ urls, appToken: 'token', authentication: 'mtls', tls: never })`),
    );
    expect(output).toMatch(/it ends with[^]*- tls: the function failed \(no answer within 30 s\)/);
    expect(code).toBe(7);
  });

  it('the function of the client secret', async () => {
    const { code, output } = await runSource(
      host(
        `ServiceModule.forRoot({ urls, authentication: 'oauth', oauth })`,
        'await app.get(ServiceAuthService).getApiToken();',
      ),
    );
    expect(output).toMatch(/it ends with.*oauth\.clientSecret.*longer than 8 s/);
    expect(code).toBe(7);
  });

  it('a ConfigModule that needs ServiceModule itself', async () => {
    const { code, output } = await runSource(
      host(
        `ServiceModule.forRoot({ urls, appToken: 'token', isGlobal: true }), ConfigModule.forRoot({ ignoreEnvFile: true }).then(
          (module) => ({
            ...module,
            providers: [
              ...module.providers,
              { provide: 'CONFIGURATION_LOADER', inject: [ServiceAuthService], useFactory: never },
            ],
          }),
        )`,
      ),
    );
    expect(output).toMatch(/it ends with[^]*ConfigModule: has not finished loading/);
    expect(code).toBe(7);
  });

  it.each([
    ['useFactory of forRootAsync', `useFactory: never`],
    ['createServiceOptions()', `useClass: class { createServiceOptions = never; }`],
  ])('%s', async (_, factory) => {
    const { code, output } = await runSource(host(`ServiceModule.forRootAsync({ ${factory} })`));
    expect(output).toMatch(/it ends with[^]*forRootAsync: the options factory has not finished within 60 s/);
    expect(code).toBe(7);
  });

  it('a load function of ConfigModule', async () => {
    const { code, output } = await runSource(
      host(`ServiceModule.forRoot({ urls, appToken: 'token' }), load`),
    );
    expect(output).toMatch(/it ends with[^]*ConfigModule: has not finished loading within 60 s/);
    expect(code).toBe(7);
  });
});
