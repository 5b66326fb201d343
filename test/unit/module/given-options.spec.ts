import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { GivenOptions, hideOptions, hideValue } from '../../../lib/module/given-options.js';

describe('GivenOptions', () => {
  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [[], 'an array'],
    ['text', 'string'],
    [() => ({}), 'function'],
  ])('refuses %p with its type', (options, type) => {
    expect(() => new GivenOptions(options)).toThrow(`the options factory returned ${type};`);
  });

  it('gives the options back, and prints none', () => {
    const options = { appToken: 'app-token-1' };
    const given = new GivenOptions(options);
    expect(given.value).toBe(options);
    expect(inspect(given, { showHidden: true }) + JSON.stringify(given)).not.toContain('app-token-1');
  });
});

describe('the providers of a definition', () => {
  const token = Symbol('options');

  it('hide a value', () => {
    const provider = { provide: 'vault', useValue: { key: 'k-1' } };
    const hidden = hideValue(provider) as { useFactory: () => unknown };
    expect(hidden).not.toHaveProperty('useValue');
    expect(hidden.useFactory()).toBe(provider.useValue);
    const options = hideOptions({ provide: token, useValue: { appToken: 'a' } }, token);
    expect(options).toEqual({ provide: token, useValue: expect.any(GivenOptions) });
  });

  it('are not changed where they have no value, or provide something else', () => {
    class Vault {}
    const factory = { provide: 'other', useFactory: () => 1 };
    for (const provider of [Vault, factory, { provide: Vault, useClass: Vault }]) {
      expect(hideValue(provider)).toBe(provider);
      expect(hideOptions(provider, token)).toBe(provider);
    }
  });
});
