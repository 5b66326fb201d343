import { describe, expect, it } from '@jest/globals';
import { readPemText } from '../../../../lib/tls/material/pem-text.js';
import { loadIdentity, tlsSettings } from '../tls-settings.js';

const BEGIN = '-----BEGIN X-----\n';
const END = '-----END X-----\n';

/** The most that a file may have. */
function mebibyteOf(text: string): Buffer {
  return Buffer.from(text.repeat(Math.floor(2 ** 20 / text.length)));
}

describe('readPemText', () => {
  // Each of these took seconds to hours while the time grew with the square of the length.
  it.each([
    ['beginnings', BEGIN],
    ['ends', END],
    ['blocks that end as another', `${BEGIN}-----END Y-----\n`],
    ['halves of boundaries', '-----BEGIN '],
  ])('is done with 1 MiB of %s', (_name, text) => {
    expect(readPemText(mebibyteOf(text))).toMatchObject({ blocks: [], truncated: true });
  });

  it('is done with a beginning and 1 MiB of dashes', () => {
    const bytes = Buffer.concat([Buffer.from(BEGIN), mebibyteOf('-')]);
    expect(readPemText(bytes)).toMatchObject({ blocks: [], truncated: true });
  });

  it('takes 1,000 blocks and no more', () => {
    expect(readPemText(Buffer.from((BEGIN + END).repeat(1_000))).blocks).toHaveLength(1_000);
    expect(readPemText(mebibyteOf(BEGIN + END))).toEqual({ blocks: [], tooMany: true });
  });

  it('an end belongs to one beginning', () => {
    const { blocks, truncated } = readPemText(Buffer.from(BEGIN + END + END + BEGIN));
    expect([blocks.length, truncated]).toEqual([1, true]);
  });

  it('a block within another is no block of its own', () => {
    const text = `${BEGIN}AAAA\n-----BEGIN Y-----\nBBBB\n-----END Y-----\n${END}`;
    expect(readPemText(Buffer.from(text)).truncated).toBe(true);
  });
});

it('a chain of too many blocks is one fault, which says so', async () => {
  const chain = mebibyteOf(BEGIN + END).toString();
  const { identity, faults } = await loadIdentity(tlsSettings({ chain }));
  expect(identity).toBeUndefined();
  expect(faults.map(({ option, message }) => [option, message])).toEqual([
    ['tls.chain', expect.stringContaining('more than 1000 PEM blocks')],
  ]);
});
