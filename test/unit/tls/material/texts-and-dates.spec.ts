import { beforeAll, describe, expect, it } from '@jest/globals';
import { daysLeft } from '../../../../lib/tls/certificate-summary.js';
import { readPemText } from '../../../../lib/tls/material/pem-text.js';
import { issue, type Issued } from '../../../helpers/certificates.js';
import { loadIdentity, tlsSettings } from '../tls-settings.js';

describe('PEM', () => {
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
});

describe('dates', () => {
  const DAY = 86_400_000;
  const START = Date.UTC(2030, 0, 1);
  const END = Date.UTC(2030, 5, 1);
  const certificate = (subject = 'a', from = START, to = END): Promise<Issued> =>
    issue(subject, { notBefore: new Date(from), notAfter: new Date(to) });

  let issued: Issued;
  beforeAll(async () => {
    issued = await certificate();
  });

  it.each([
    [
      START - 1,
      /is not valid before 2030-01-01T00:00:00Z, and this machine's clock says 2029-12-31T23:59:59Z/,
    ],
    [START, undefined],
    [END - 1, undefined],
    [END, /the certificate "CN=a" \(SHA-256 [\w:]+\) expired on 2030-06-01T00:00:00Z/],
  ])('the dates of a certificate, to the millisecond: %d', async (now, message) => {
    const pems = { certificate: issued.certificate, privateKey: issued.key };
    const { faults } = await loadIdentity(tlsSettings(pems), now);
    expect(faults.map((fault) => fault.message)).toEqual(message ? [expect.stringMatching(message)] : []);
  });

  describe('The dates of a chain', () => {
    it.each([
      ['before all of them', START - 1, /chain is valid now: "CN=a".* is not valid before 2030-01-01/],
      ['at the beginning', START, undefined],
      ['just before the end', END - 1, undefined],
      ['at the end', END, /chain is valid now: "CN=a".* expired on 2030-06-01/],
    ])('%s', async (_name, now, message) => {
      const { faults } = await loadIdentity(tlsSettings({ chain: issued.certificate }), now);
      expect(faults.map((fault) => fault.message)).toEqual(message ? [expect.stringMatching(message)] : []);
    });

    it('one valid anchor is enough; one that is over, or within 30 days of it, is warned of', async () => {
      const chain = await Promise.all([
        certificate('over', START - DAY, START),
        certificate('early', END, END + DAY),
        certificate('soon', START, START + 30 * DAY - 1_000),
        certificate('later', START, START + 30 * DAY),
      ]);
      const pems = { chain: chain.map((each) => each.certificate).join('') };
      const { faults, warnings } = await loadIdentity(tlsSettings(pems), START);
      expect(faults).toEqual([]);
      expect(warnings).toEqual([
        expect.stringMatching(/^tls\.chain: "CN=over".* of the service's chain expired on 2030-01-01/),
        expect.stringMatching(/^tls\.chain: "CN=soon".* expires on 2030-01-30/),
      ]);
    });
  });

  it.each([
    [END - 2 * DAY, 2],
    [END - 1, 0],
    [END, 0],
    [END + 1, -1],
  ])('days left at %d', (now, days) => {
    expect(daysLeft({ validTo: new Date(END) }, now)).toBe(days);
  });
});
