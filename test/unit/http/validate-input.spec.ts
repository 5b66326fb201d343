import { describe, expect, it } from '@jest/globals';
import { ArrayNotEmpty, IsOptional, IsString, Length } from 'class-validator';
import { validateInput } from '../../../lib/http/validate-input.js';

class Input {
  @IsString()
  @Length(1, 5)
  name!: string;

  @IsOptional()
  @ArrayNotEmpty()
  @IsString({ each: true })
  kinds?: string[];
}

describe('validateInput', () => {
  it('returns an instance of the class', () => {
    const input = validateInput(Input, { name: 'a', kinds: ['b'] });
    expect(input).toBeInstanceOf(Input);
    expect({ ...input }).toEqual({ name: 'a', kinds: ['b'] });
  });

  it.each<[unknown, object[]]>([
    ['text', [{ property: 'input', message: 'must be an object' }]],
    [null, [{ property: 'input', message: 'must be an object' }]],
    [[], [{ property: 'input', message: 'must be an object' }]],
    [{}, [{ property: 'name', message: 'must be longer than or equal to 1 characters' }]],
    [{ name: 'a', other: 1 }, [{ property: 'other', message: 'is not a known field' }]],
    [
      { name: 'a', ['x'.repeat(99)]: 1 },
      [{ property: `${'x'.repeat(64)}…`, message: 'is not a known field' }],
    ],
    [{ name: 'a', kinds: [] }, [{ property: 'kinds', message: expect.any(String) }]],
    // A hole is null in JSON.
    [
      { name: 'a', kinds: Object.assign(['b'], { length: 2 }) },
      [{ property: 'kinds', message: '(each value) must be a string' }],
    ],
    [
      JSON.parse('{"name": "a", "__proto__": {}}'),
      [{ property: 'input', message: 'holds a property name that is not allowed' }],
    ],
  ])('refuses %j', (input, faults) => {
    expect(thrownBy(() => validateInput(Input, input))).toMatchObject({ code: 'invalid_request', faults });
  });
});

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
