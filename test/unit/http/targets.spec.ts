import { expect, it } from '@jest/globals';
import { Targets } from '../../../lib/http/targets.js';

it('remembers addresses, but no more than some hundred of them', () => {
  const origin = 'https://api.example';
  const targets = new Targets({ baseUrl: origin, origins: new Set([origin]) });
  const first = targets.resolve('/banks/v1');
  expect(targets.resolve('/banks/v1')).toBe(first);
  for (let number = 0; number < 300; number += 1) targets.resolve(`/customers/v1/${number}`);
  expect(targets.resolve('/banks/v1')).not.toBe(first);
  expect(targets.resolve('/banks/v1')).toEqual(first);
});
