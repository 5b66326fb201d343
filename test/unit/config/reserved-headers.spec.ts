import { expect, it } from '@jest/globals';
import { isReservedHeader } from '../../../lib/config/rules.js';

it.each([
  ...[
    'Host',
    'Connection',
    'Content-Length',
    'Expect',
    'Keep-Alive',
    'Proxy-Authorization',
    'Proxy-Connection',
  ],
  ...['TE', 'Trailer', 'Transfer-Encoding', 'Upgrade'],
  ...['Authorization', 'Cookie', 'User-Agent', 'Accept', 'Accept-Encoding', 'Content-Type', '__proto__'],
])('%s cannot carry the app token', (name) => {
  expect(isReservedHeader(name)).toBe(true);
  expect(isReservedHeader(name.toLowerCase())).toBe(true);
});

it.each(['service-app-token', 'x-authorization', 'authorization-2', 'x-host', 'content', 'cookies'])(
  '%s can carry the app token',
  (name) => expect(isReservedHeader(name)).toBe(false),
);
