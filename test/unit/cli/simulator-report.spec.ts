import { expect, it } from '@jest/globals';
import { describeRefusal } from '../../../lib/cli/simulator-report.js';

it('shows nothing of a client that a terminal would take for a command', () => {
  const line = describeRefusal({
    face: 'baseUrl',
    alert: 'unknown_ca',
    certificateSubject: 'CN=\u001b[2Jü',
  } as never);
  expect(line).toContain('CN=?[2J?');
});
