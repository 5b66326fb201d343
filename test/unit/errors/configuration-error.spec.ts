import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { ServiceCertificateError, ServiceConfigurationError } from 'nestjs-service';

const faults = [{ option: 'appToken', variable: 'SERVICE_APP_TOKEN', message: 'is missing.' }];

describe.each([ServiceConfigurationError, ServiceCertificateError])('%p', (Class) => {
  const error = new Class(faults);

  it('has its faults as data', () => {
    expect(error.faults).toEqual(faults);
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code: error.code, faults });
  });

  it('prints each fault once', () => {
    expect(inspect(error, { depth: 5 }).split('is missing.')).toHaveLength(2);
  });
});
