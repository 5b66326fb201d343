import { describe, expect, it } from '@jest/globals';
import { describeError, ServiceRequestError } from '../../../lib/errors/index.js';
import { checkCallOptions, checkWhole } from '../../../lib/http/call-options.js';
import { answerOf } from '../../../lib/http/exception-answer.js';

describe('The options of a call', () => {
  it.each<[object, string]>([
    [{ Timeout: 1 }, 'Timeout is not an option: did you mean timeout?'],
    [{ URL: '/' }, 'URL is not an option: did you mean url?'],
    [{ baseUrl: '/' }, 'baseUrl is not an option: did you mean baseURL?'],
    [{ retry: 0, retrie: 0 }, 'retrie is not an option: did you mean retries?'],
    [{ header: {} }, 'header is not an option: did you mean headers?'],
    [{ singal: {} }, 'singal is not an option: did you mean signal?'],
    [{ httpsAgent: {} }, 'httpsAgent has no effect here: the client certificate'],
    [{ maxRedirects: 5 }, 'maxRedirects has no effect here: redirects are never followed'],
    [{ decompress: false }, 'decompress has no effect here: answers are always decompressed'],
    [{ maxContentLength: 5 }, 'maxContentLength has no effect here: '],
    [{ proxy: { host: 'proxy' } }, 'proxy has no effect here: set `http.proxy`'],
  ])('%j is refused', (options, message) => {
    expect(() => checkCallOptions(options)).toThrow(message);
  });

  it('is a mistake of the application, whose callers learn nothing of it', () => {
    const refused = (): void => checkCallOptions({ httpsAgent: {} });
    expect(refused).toThrow(ServiceRequestError);
    try {
      refused();
    } catch (error) {
      expect(answerOf(error)).toEqual({
        status: 500,
        message: 'Internal server error',
        code: 'invalid_request',
      });
      expect(describeError(error as ServiceRequestError)).toMatch(
        /httpsAgent has no effect.*Correct it in the application's code/,
      );
    }
  });

  it.each<object>([
    {},
    { url: '/', method: 'GET', data: 1, route: '/', parse: Number, responseType: 'text', cancelToken: {} },
    { decompress: undefined, socketPath: null, Retries: undefined },
    { maxRedirects: 0, proxy: false, httpsAgent: undefined, decompress: true, responseEncoding: 'utf8' },
    { maxContentLength: -1, maxBodyLength: Infinity, validateStatus: () => true },
    // Of a host: too short or too far to be meant for one of ours.
    { rute: '/', dat: 1, retry: true, tenant: 't-1', metadata: {}, toString: 1, constructor: 1 },
  ])('%j passes', (options) => {
    expect(() => checkCallOptions(options)).not.toThrow();
  });
});

describe('retries', () => {
  it.each([0, 10, undefined])('%s', (retries) => expect(checkWhole('retries', retries, 0, 10)).toBe(retries));
  it.each([-1, 11, 1.5, '2', NaN])('not %s', (retries) => {
    expect(() => checkWhole('retries', retries, 0, 10)).toThrow(
      'retries must be a whole number from 0 to 10',
    );
  });
});
