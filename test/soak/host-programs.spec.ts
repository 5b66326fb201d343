import { describe, expect, it } from '@jest/globals';
import { runHostProgram } from '../helpers/source-process.js';

/** On this folder's NestJS; test/consumers runs the same programs on the others. */
describe('A host in a process of its own', () => {
  it('gets the errors of Nest that docs/configuration.md shows', async () => {
    expect(await runHostProgram('once/nest-errors')).toEqual({ code: 0, output: '' });
  });

  it('answers with ServiceExceptionFilter in a microservice, a hybrid application and on gateways', async () => {
    expect(await runHostProgram('once/transports')).toEqual({ code: 0, output: '' });
  }, 60_000);

  // test/e2e ends hosts in its own process.
  it('ends in time at SIGTERM, and answers the requests that wait for calls, tokens and retries', async () => {
    const { code, output } = await runHostProgram('shutdown');
    expect(output).toMatch(/^((express|fastify), (hooks|close): 16 answered.*\n){3}$/);
    expect(code).toBe(0);
  }, 600_000);

  it('ends in time where a signal and its own close() come together', async () => {
    const { code, output } = await runHostProgram('closed-twice');
    expect(output).toMatch(/^((context|express|fastify): (answered|aborted)\n){6}$/);
    expect(code).toBe(0);
  }, 600_000);
});
