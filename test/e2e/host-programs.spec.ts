import { describe, expect, it } from '@jest/globals';
import { runHostProgram } from '../helpers/source-process.js';

/** On this folder's NestJS; test/consumers runs the same programs on the others. */
describe('A host in a process of its own', () => {
  it('answers with ServiceExceptionFilter in a microservice, a hybrid application and on gateways', async () => {
    const output = await runHostProgram('once/transports');
    expect(output).toBe('microservice: ok\nhybrid: ok\nsocketIoGateway: ok\nwsGateway: ok\nok\n');
  }, 60_000);
});
