import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isPlaceholder } from '../../../lib/config/validate-options.js';
import { draws } from '../../helpers/in-soak.js';
import { readDocument, readReadme } from '../../helpers/readme.js';

describe('isPlaceholder', () => {
  it.each([
    'https://...',
    'https://.../base',
    'https://…',
    'https://<host>/v1',
    'https://{base_url}',
    'https://your-host:8443',
    'HTTPS://YOUR-HOST',
    '...',
    '<your-app-token>',
    '<APP TOKEN>',
    '{base_url}',
    '${SERVICE_APP_TOKEN}',
    '{{ app_token }}',
    'your-app-token',
    'YOUR_CLIENT_SECRET',
    'changeme',
    'change-me',
    'Replace_Me',
    'TODO',
    'placeholder',
    '00000000-0000-0000-0000-000000000000',
    '00000000-0000-4000-8000-000000000000',
    ' changeme\n',
  ])('recognises %j', (value) => {
    expect(isPlaceholder(value)).toBe(true);
  });

  it.each([
    '',
    'yourself',
    'your-1a2b3c',
    'https://your-bank.com',
    'https://changeme.io',
    'https://api.service.example',
    'changeme1',
    'todo-list',
    '<a1b2c3>',
    '{"key":1}',
    'a...b',
    '00000000-0000-4000-8000-000000000001',
    '-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----',
  ])('does not take %j for a placeholder', (value) => {
    expect(isPlaceholder(value)).toBe(false);
  });

  it('takes no token, secret or id for a placeholder', () => {
    const real = fc.oneof(
      fc.uuid(),
      fc.base64String({ minLength: 12 }),
      fc.string({ minLength: 12, unit: fc.constantFrom(...'0123456789abcdef') }),
      fc.string({ minLength: 12, unit: 'grapheme-ascii' }),
      fc.webUrl(),
    );
    fc.assert(
      fc.property(real, (value) => !isPlaceholder(value)),
      draws(2_000),
    );
  });

  it('recognises those of the README, of docs/getting-started.md and of .env.example', async () => {
    const documents = await Promise.all([readReadme(), readDocument('docs/getting-started.md')]);
    const fences = documents.flatMap((document) => document.fences);
    const example = await readFile(join(import.meta.dirname, '../../../.env.example'), 'utf8');
    const text = [
      ...fences.filter(({ language }) => language === 'dotenv').map((fence) => fence.text),
      example,
    ];
    const values = [...text.join('\n').matchAll(/^(?:# )?(SERVICE_\w+)=(.+)$/gm)];
    const real = /_FILE$|_ENVIRONMENT$|_AUTHENTICATION$|_CHECK$|_HEADER$|_PROXY$|_ROOTS$|_BEARER$/;
    const left = values.filter(([, variable, value]) => !real.test(variable) && !isPlaceholder(value));
    // There is a warning, because their host is reserved.
    // Nor are those of a start that calls nothing: with a placeholder there is no start.
    const others = left.filter(([, , value]) => !/^(https:\/\/service\.invalid|not-used)$/.test(value));
    expect(others.filter(([, , value]) => !/^https:\/\/[\w.-]+\.example$/.test(value))).toEqual([]);
    expect(values.length).toBeGreaterThan(30);
  });
});
