import { describe, expect, it } from '@jest/globals';
import { runHostProgram } from '../helpers/source-process.js';

/** On this folder's NestJS; test/consumers runs the same program on the others, and test/e2e ends hosts in its own process. */
describe('A host in a process of its own', () => {
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
