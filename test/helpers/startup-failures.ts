import { expect, it } from '@jest/globals';
import { ServiceConfigurationError, ServiceModule } from 'nestjs-service';
import { BROKEN_SETUPS, setupsOfBlock } from './broken-setups.js';
import { CollectingLogger, everyForm, secretsIn } from './secret-scan.js';
import { modulesOfBlock } from './start-module.js';

/** A test for each of the set-ups: with `startupCheck: 'fail'`, the start fails and names the true cause. */
export function testStartupFailures(names = Object.keys(BROKEN_SETUPS)): void {
  const { start, setVariables } = modulesOfBlock();
  const withSetup = setupsOfBlock();
  for (const what of names) {
    const setup = BROKEN_SETUPS[what];
    it(what, async () => {
      await withSetup(setup, async (variables, simulator) => {
        setVariables({
          ...(Object.keys(variables).length > 0 ? { SERVICE_STARTUP_CHECK: 'fail' } : {}),
          // One attempt, so that the test does not wait.
          ...(setup.cause.includes('.') ? { SERVICE_HTTP_RETRIES: '0' } : {}),
          ...(setup.stepMs ? { SERVICE_HTTP_TIMEOUT: String(setup.stepMs) } : {}),
          ...variables,
        });
        const logger = new CollectingLogger();
        const starting = start({ imports: [ServiceModule.forRoot()] }, logger);
        if (setup.starts) return void (await starting);
        const error: unknown = await starting.catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(ServiceConfigurationError);
        const { message, faults, code } = error as ServiceConfigurationError;
        expect(message.replace(/\n/g, ' ')).toMatch(new RegExp(setup.wordsAtStart ?? setup.words, 'i'));
        if (setup.cause.includes('.')) {
          expect(code).toBe('startup_check_failed');
          // It makes two calls, and looks no further: a token, and the banks.
          const check = setup.cause.startsWith('token') ? 'token.api' : 'api.banks';
          expect(message).toContain(`(${check})`);
          expect(faults).toEqual([
            {
              option: expect.any(String),
              variable: expect.stringMatching(/^SERVICE_/),
              message: expect.any(String),
            },
          ]);
        }
        const secrets = {
          appToken: simulator.appToken,
          clientSecret: simulator.clientSecret,
          privateKey: simulator.application.privateKey,
          passwords: 's3cret-',
        };
        expect(secretsIn(everyForm(error) + everyForm(logger.lines), secrets)).toEqual([]);
      });
    });
  }
}
