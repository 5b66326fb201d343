import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import {
  copyOf,
  describeError,
  explain,
  nameOptions,
  ServiceApiError,
  ServiceConnectionError,
  ServiceTokenError,
} from '../../../lib/errors/index.js';
import { CallsInFlight } from '../../../lib/http/calls-in-flight.js';
import { describeOption } from '../../helpers/describe-option.js';

const HINT = 'Check oauth.clientId and oauth.clientSecret: both of the application of this environment.';
const NAMED =
  'Check oauth.clientId (SERVICE_KSA_CLIENT_ID) and oauth.clientSecret (SERVICE_KSA_CLIENT_SECRET): both of the application of this environment.';

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

  it('is about the options that it names, each once, unless its row says another', () => {
    const hint = 'Check {address} and {appToken}; {address} is for the {environment}.';
    const values = { address: 'urls.baseUrl', environment: 'sandbox' };
    expect(explain('No answer', { hint }, values)).toEqual({
      message: 'No answer',
      hint: 'Check urls.baseUrl and appToken; urls.baseUrl is for the sandbox.',
      options: ['urls.baseUrl', 'appToken'],
    });
    expect(explain('', { hint, options: ['http.proxy'] }, values).options).toEqual(['http.proxy']);
  });

  it('is absent where there is nothing to do', () => {
    const error = new ServiceTokenError({ code: 'token_refused', message: 'It refuses them.' });
    expect(Object.keys(error)).not.toEqual(expect.arrayContaining(['hint']));
    expect(error.stack).not.toContain('Check');
    expect(nameOptions(error, describeOption())).toBe(error);
  });

  it('names each option once, with its variable, however often the error passes', () => {
    const error = refused();
    for (let pass = 0; pass < 3; pass += 1) {
      expect(nameOptions(error, describeOption('ksa'))).toBe(error);
      expect(error.hint).toBe(NAMED);
      expect(error.stack).toContain(`It refuses them.\n${NAMED}\n    at `);
    }
    expect(nameOptions(copyOf(error) as ServiceTokenError, describeOption('ksa')).hint).toBe(NAMED);
  });

  it('names whole paths only, and what it is about', () => {
    const hint =
      'The environment: urls.authUrl.x, my.urls.authUrl, urls.authUrlX, urls.authUrl. Not appToken.';
    expect(nameOptions(refused(hint, ['urls.authUrl']), describeOption()).hint).toBe(
      'The environment: urls.authUrl.x, my.urls.authUrl, urls.authUrlX, urls.authUrl (SERVICE_AUTH_URL). Not appToken.',
    );
    expect(nameOptions(refused('Check tokenStore.', ['tokenStore']), describeOption()).hint).toBe(
      'Check tokenStore.',
    );
  });

  it('leaves the client with its variables; errors of others leave as they are', async () => {
    const calls = new CallsInFlight(describeOption('ksa'));
    await expect(calls.run(() => Promise.reject(refused()))).rejects.toMatchObject({ hint: NAMED });
    const other = new Error('of the host');
    await expect(calls.run(() => Promise.reject(other))).rejects.toBe(other);
    expect(await calls.run(async () => 1)).toBe(1);
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
