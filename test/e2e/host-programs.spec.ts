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
});
