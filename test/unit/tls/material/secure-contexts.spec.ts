import { expect, it, jest } from '@jest/globals';
import * as tls from 'node:tls';
import { loadIdentity, tlsSettings } from '../tls-settings.js';

const [root] = tls.rootCertificates as [string];
const native = Object.getPrototypeOf(tls.createSecureContext().context) as { addCACert(pem: string): void };

it('adds to the public roots, which Node parses then, with the first connection to the token endpoint', async () => {
  const adding = jest.spyOn(native, 'addCACert');
  const { identity } = await loadIdentity(tlsSettings({ chain: root }));
  // That of the context for the API.
  expect(adding).toHaveBeenCalledTimes(1);
  // As tls.connect reads it.
  expect(identity?.tokenContext.context).toBe(identity?.tokenContext.context);
  expect(adding).toHaveBeenCalledTimes(2);
  adding.mockRestore();
});
