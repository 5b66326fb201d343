import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { hostPrograms, type HostPrograms } from '../helpers/host-programs.js';

/** On this folder's NestJS; test/consumers runs the same programs on the others. */
describe('A host in a process of its own', () => {
  let programs: HostPrograms;

  beforeAll(async () => {
    programs = await hostPrograms();
  });
  afterAll(() => programs.remove());

  it('answers with ServiceExceptionFilter in a microservice, a hybrid application and on gateways', async () => {
    const output = await programs.run('transports');
    expect(output).toBe('microservice: ok\nhybrid: ok\nsocketIoGateway: ok\nwsGateway: ok\nok\n');
  }, 90_000);

  it('ends in time at SIGTERM, and answers the requests that wait for calls, tokens and retries', async () => {
    const output = await programs.run('shutdown');
    expect(output).toMatch(/^((express|fastify), (hooks|close): 16 answered.*\n){4}ok\n$/);
  }, 90_000);
});
