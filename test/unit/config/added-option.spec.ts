import { expect, it } from '@jest/globals';
import { IsString } from 'class-validator';
import { Option, sectionsOf } from '../../../lib/config/option.js';
import { ServiceModuleOptions } from '../../../lib/config/options.js';
import { resolveOptions } from '../../../lib/config/resolve-options.js';

it('an option needs only its declaration in its class to reach the module, in and outside of sections', async () => {
  // The addresses are chosen from `urls`, which the module itself never sees.
  const { urls: _, ...sections } = sectionsOf(ServiceModuleOptions);
  for (const type of [ServiceModuleOptions, ...Object.values(sections)]) {
    Option()(type.prototype as object, 'added');
    IsString()(type.prototype as object, 'added');
  }
  const added = Object.fromEntries(Object.keys(sections).map((key) => [key, { added: `in ${key}` }]));
  const { faults, options } = await resolveOptions({
    ...added,
    added: 'beside them',
    authentication: 'oauth',
    urls: { sandboxUrl: 'https://api.service.example', sandboxAuthUrl: 'https://auth.service.example' },
    oauth: {
      ...added.oauth,
      clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52',
      clientSecret: 'a1b2c3',
    },
  } as ServiceModuleOptions);
  expect(faults).toEqual([]);
  expect(Object.keys(added).length).toBeGreaterThan(4);
  expect(options).toMatchObject({ ...added, added: 'beside them' });
});
