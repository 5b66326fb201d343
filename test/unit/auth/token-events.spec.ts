import { expect, it } from '@jest/globals';
import { TokenEvents } from '../../../lib/auth/token-events.js';
import { ServiceTokenError } from '../../../lib/errors/index.js';

it('tells the log of failures that no caller hears of, and of no others', () => {
  const lines: string[] = [];
  const events = new TokenEvents({ warn: (line) => lines.push(line) });
  const error = new ServiceTokenError({ code: 'token_unavailable', message: 'down', scope: 'api' });
  events.failed('api', error, { attempt: 1, durationMs: 1, waiting: 2 });
  expect(lines).toEqual([]);
  events.failed('api', error, { attempt: 1, durationMs: 1, waiting: 0 });
  expect(lines).toEqual(['A token could not be renewed in the background (token_unavailable): down']);
});
