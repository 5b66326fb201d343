import { describe, expect, it } from '@jest/globals';
import { runHostProgram } from '../helpers/source-process.js';

/** Uses the installed version of NestJS. test/consumers runs the same programs with the other versions. */
describe('host in a process of its own', () => {
  it('a host gets the errors of Nest that docs/configuration.md shows', async () => {
    expect(await runHostProgram('once/nest-errors')).toEqual({ code: 0, output: '' });
  });

  it('ServiceExceptionFilter answers in microservices, hybrid applications and gateways', async () => {
    expect(await runHostProgram('once/transports')).toEqual({ code: 0, output: '' });
  }, 60_000);

  // test/e2e shuts down hosts too, but inside the test process.
  it('a host that gets SIGTERM answers the requests that wait for calls, tokens and retries, and ends in time', async () => {
    const { code, output } = await runHostProgram('shutdown');
    expect(output).toMatch(/^((express|fastify), (hooks|close): 16 answered.*\n){3}$/);
    expect(code).toBe(0);
  }, 600_000);

  it('a host ends in time if a signal and its own close() coincide', async () => {
    const { code, output } = await runHostProgram('closed-twice');
    expect(output).toMatch(/^((context|express|fastify): (answered|aborted)\n){6}$/);
    expect(code).toBe(0);
  }, 600_000);
});
