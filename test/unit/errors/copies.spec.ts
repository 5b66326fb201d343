import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import * as ours from '../../../lib/errors/index.js';
import { answerOf } from '../../../lib/http/exception-answer.js';

type Errors = typeof ours;

const CLASSES = [
  'ServiceError',
  'ServiceApiError',
  'ServiceConnectionError',
  'ServiceTokenError',
  'ServiceRequestError',
  'ServiceConfigurationError',
  'ServiceCertificateError',
  'ServiceStartupError',
] as const;

const fault = { option: 'tls.certificate', message: 'is missing' };
const OF_CLASS: Record<string, (errors: Errors) => ours.ServiceError> = {
  ServiceApiError: (errors) =>
    new errors.ServiceApiError({
      message: 'a',
      status: 409,
      method: 'GET',
      path: '/a',
      body: { message: 'a' },
    }),
  ServiceConnectionError: (errors) => new errors.ServiceConnectionError({ message: 'a', kind: 'timeout' }),
  ServiceTokenError: (errors) => new errors.ServiceTokenError({ message: 'a', code: 'token_refused' }),
  ServiceRequestError: (errors) => new errors.ServiceRequestError([{ property: 'a', message: 'is odd' }]),
  ServiceConfigurationError: (errors) => new errors.ServiceConfigurationError([fault]),
  ServiceCertificateError: (errors) => new errors.ServiceCertificateError([fault]),
  ServiceStartupError: (errors) => new errors.ServiceStartupError('api.banks', fault),
};

describe('errors of another copy of the package', () => {
  let theirs: Errors;

  beforeAll(async () => {
    jest.resetModules();
    theirs = await import('../../../lib/errors/index.js');
  });

  const classesOf = (error: unknown, errors: Errors): string[] =>
    CLASSES.filter((name) => error instanceof errors[name]);

  it.each(Object.entries(OF_CLASS))('%s is one of the same classes', (_, make) => {
    const error = make(theirs);
    expect(Object.getPrototypeOf(error)).not.toBe(Object.getPrototypeOf(make(ours)));
    expect(classesOf(error, ours)).toEqual(classesOf(error, theirs));
    expect(classesOf(make(ours), theirs)).toEqual(classesOf(make(ours), ours));
    expect(ours.isServiceError(error)).toBe(true);
    expect(answerOf(error)).toEqual(answerOf(make(ours)));
    expect(ours.describeError(error)).toBe(ours.describeError(make(ours)));
  });

  it('stay of their class when they are copied', () => {
    const copy = ours.copyOf(OF_CLASS.ServiceApiError(theirs));
    expect(copy).toBeInstanceOf(theirs.ServiceApiError);
    expect(copy).toMatchObject({ status: 409, message: 'a' });
  });

  it('are none of a class that a host derives, whose own errors are found as any', () => {
    class OfHost extends ours.ServiceApiError {}
    class OfOther extends theirs.ServiceApiError {}
    const details = { message: 'a', status: 409, method: 'GET', path: '/a' };
    expect(new OfHost(details)).toBeInstanceOf(OfHost);
    expect(new OfHost(details)).toBeInstanceOf(theirs.ServiceApiError);
    expect(new OfOther(details)).not.toBeInstanceOf(OfHost);
    expect(new theirs.ServiceApiError(details)).not.toBeInstanceOf(OfHost);
    expect(new ours.ServiceApiError(details)).not.toBeInstanceOf(OfHost);
  });

  it.each([
    ['its name', Object.assign(new Error('a'), { name: 'ServiceApiError' })],
    ['its code', Object.assign(new Error('a'), { code: 'api_error', status: 409 })],
    ['a class of the same name', new (class ServiceApiError extends Error {})()],
    ['its fields', { ...OF_CLASS.ServiceApiError(ours) }],
    ['its JSON', OF_CLASS.ServiceApiError(ours).toJSON()],
    ['nothing', null],
    ['the name of the symbol', 'nestjs-service.ServiceApiError'],
  ])('are not known by %s', (_, thing) => {
    expect(classesOf(thing, ours)).toEqual([]);
    expect(ours.isServiceError(thing)).toBe(false);
  });

  it('are answered where an older copy knows fewer fields', () => {
    const older = (name: 'ServiceApiError' | 'ServiceRequestError' | 'ServiceConnectionError') => {
      const error = Object.assign(new Error('said'), { code: 'a_code' });
      return Object.setPrototypeOf(error, theirs[name].prototype) as ours.ServiceError;
    };
    expect(answerOf(older('ServiceApiError'))).toMatchObject({ status: 502 });
    expect(answerOf(older('ServiceConnectionError'))).toMatchObject({ status: 503 });
    expect(answerOf(older('ServiceRequestError'))).toMatchObject({ status: 400, message: 'said' });
    for (const name of ['ServiceApiError', 'ServiceConnectionError'] as const) {
      expect(ours.describeError(older(name))).not.toContain('undefined');
    }
  });
});
