import { validateSync, type ValidationError } from 'class-validator';
import { cleanText, ServiceRequestError, type RequestFault } from '../errors/index.js';

/** Property names that would change the DTO instance itself. */
const DANGEROUS_KEYS = ['__proto__', 'constructor', 'prototype'];

/**
 * Checks a caller's input against a DTO class and returns an instance of that class. A property that the DTO does not have is
 * refused, not silently dropped. Throws ServiceRequestError with all faults, none of which shows a value.
 * @param instead tells the developer how to send a field that the DTO does not have
 */
export function validateInput<T extends object>(Dto: new () => T, input: unknown, instead?: string): T {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw ServiceRequestError.of('input', 'must be an object');
  }
  if (Object.keys(input).some((key) => DANGEROUS_KEYS.includes(key))) {
    throw ServiceRequestError.of('input', 'holds a property name that is not allowed');
  }
  const dto: T = Object.assign(new Dto(), input);
  const errors = validateSync(dto, {
    whitelist: true,
    forbidNonWhitelisted: true,
    forbidUnknownValues: true,
    stopAtFirstError: true,
    validationError: { target: false, value: false },
  });
  const advice = errors.some(isUnknownField) ? instead : undefined;
  if (errors.length > 0) throw new ServiceRequestError(errors.map(toFault), undefined, advice);
  return dto;
}

function isUnknownField({ constraints = {} }: ValidationError): boolean {
  return 'whitelistValidation' in constraints;
}

function toFault(error: ValidationError): RequestFault {
  const { property, constraints = {} } = error;
  const name = cleanText(property, [], 64);
  if (isUnknownField(error)) return { property: name, message: 'is not a known field' };
  // The messages of class-validator begin with the name of the property, or with "each value in" and the name.
  const messages = Object.values(constraints).map((message) =>
    message.replace(`each value in ${property}`, '(each value)').replace(`${property} `, ''),
  );
  return { property: name, message: messages.join(', ') };
}
