import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import {
  describeError,
  explain,
  ServiceApiError,
  ServiceConnectionError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { describeOption } from '../../helpers/describe-option.js';

const HINT = 'Check oauth.clientId and oauth.clientSecret: both of the application of this environment.';
const refused = (hint: string | undefined = HINT, options = ['oauth.clientSecret', 'oauth.clientId']) =>
  new ServiceTokenError({ code: 'token_refused', message: 'It refuses them.', hint, options });

describe('a hint', () => {
  it('is data, and the line of the stack below the message; the message does without it', () => {
    const error = refused();
    expect(error.message).toBe('It refuses them.');
    expect(error.toJSON()).toMatchObject({ hint: HINT, options: ['oauth.clientSecret', 'oauth.clientId'] });
    expect(error.stack).toMatch(/^\w*Error: It refuses them\.\nCheck oauth\.clientId and [^\n]+\.\n/);
    expect(inspect(error)).toContain(HINT);
  });

  it('is about the options that it names, each with its variable once, unless its row says another', () => {
    const hint = 'Check {address} and {appToken}; {address} is for the {environment}.';
    const values = { environment: 'sandbox' };
    const names = { option: 'urls.baseUrl', describeOption: describeOption('ksa') };
    expect(explain('No answer', { hint }, values, names)).toEqual({
      message: 'No answer',
      hint: 'Check urls.baseUrl (SERVICE_KSA_BASE_URL) and appToken (SERVICE_KSA_APP_TOKEN); urls.baseUrl is for the sandbox.',
      options: ['urls.baseUrl', 'appToken'],
    });
    expect(explain('', { hint, options: ['http.proxy'] }, values, names).options).toEqual(['http.proxy']);
  });

  it('is absent where there is nothing to do', () => {
    const error = new ServiceTokenError({ code: 'token_refused', message: 'It refuses them.' });
    expect(Object.keys(error)).not.toEqual(expect.arrayContaining(['hint']));
    expect(error.stack).not.toContain('Check');
  });
});

describe('the line of the log about an error', () => {
  it('has the call, what happened, the correlation id and what to do', () => {
    const call = { method: 'GET', path: '/banks/v1', correlationId: 'id-1' };
    const message = 'GET /banks/v1: HTTP 503: the service is out of order.';
    const api = new ServiceApiError({ ...call, status: 503, message, hint: 'Try again later.' });
    expect(describeError(api)).toBe(
      'api_error: GET /banks/v1: HTTP 503: the service is out of order; correlation id id-1. Try again later.',
    );
    const parsed = new ServiceApiError({
      ...call,
      code: 'invalid_response',
      status: 200,
      message: 'Not a list.',
    });
    expect(describeError(parsed)).toBe('invalid_response: GET /banks/v1: Not a list; correlation id id-1');
    expect(describeError(refused())).toBe(`token_refused: It refuses them. ${HINT}`);
    const closed = new ServiceConnectionError({
      kind: 'closed',
      message: 'Shut down.',
      outcomeUnknown: true,
    });
    expect(describeError(closed)).toBe('connection_closed: Shut down; it may have been carried out');
  });
});
