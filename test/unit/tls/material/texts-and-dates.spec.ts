import { beforeAll, describe, expect, it } from '@jest/globals';
import { daysLeft } from '../../../../lib/tls/certificate-summary.js';
import { issue, type Issued } from '../../../helpers/certificates.js';
import { loadIdentity, tlsSettings } from '../tls-settings.js';

describe('PEM', () => {
  const BEGIN = '-----BEGIN X-----\n';
  const END = '-----END X-----\n';

  /** The most that a file may have. */
  function mebibyteOf(text: string): Buffer {
    return Buffer.from(text.repeat(Math.floor(2 ** 20 / text.length)));
  }

  const chainFault = async (chain: Buffer) => {
    const { faults } = await loadIdentity(tlsSettings({ chain: chain.toString() }));
    expect(faults).toHaveLength(1);
    return faults[0].message;
  };

  // Each of these took seconds to hours while the time grew with the square of the length.
  it.each([
    ['beginnings', BEGIN],
    ['ends', END],
    ['blocks that end as another', `${BEGIN}-----END Y-----\n`],
    ['halves of boundaries', '-----BEGIN '],
    ['backslashes', `${BEGIN}${'\\'.repeat(999)}`],
    ['blanks', `${BEGIN}${' '.repeat(99_999)}`],
  ])('is done with 1 MiB of %s', async (_name, text) => {
    expect(await chainFault(mebibyteOf(text))).toMatch(/is truncated/);
  });

  it('is done with a beginning and 1 MiB of dashes', async () => {
    expect(await chainFault(Buffer.concat([Buffer.from(BEGIN), mebibyteOf('-')]))).toMatch(/is truncated/);
  });

  it('has one fault for 1 MiB of blocks of no use', async () => {
    expect(await chainFault(mebibyteOf(BEGIN + END))).toMatch(/PEM block of another kind/);
    const empty = (BEGIN + END).replaceAll('X', 'CERTIFICATE');
    expect(await chainFault(mebibyteOf(empty))).toMatch(/no readable certificate in its PEM block 1:/);
  });

  it.each([
    ['an end belongs to one beginning', `${BEGIN}${END}${END}${BEGIN}`],
    [
      'a block within another is no block of its own',
      `${BEGIN}AA\n-----BEGIN Y-----\nBB\n-----END Y-----\n${END}`,
    ],
  ])('%s', async (_name, text) => {
    expect(await chainFault(Buffer.from(text))).toMatch(/is truncated/);
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
    [START - 1, /is not valid before 2030-01-01T00:00:00Z; this machine's clock says 2029-12-31T23:59:59Z/],
    [START, undefined],
    [END - 1, undefined],
    [END, /holds the certificate "CN=a" \(SHA-256 [\w:]+\), which expired on 2030-06-01T00:00:00Z/],
  ])('the dates of a certificate, to the millisecond: %d', async (now, message) => {
    const pems = { certificate: issued.certificate, privateKey: issued.key };
    const { faults } = await loadIdentity(tlsSettings(pems), now);
    expect(faults.map((fault) => fault.message)).toEqual(message ? [expect.stringMatching(message)] : []);
  });

  describe('The dates of a chain', () => {
    it.each([
      [
        'before all of them',
        START - 1,
        /holds no certificate that is valid now: "CN=a".* is not valid before 2030-01-01/,
      ],
      ['at the beginning', START, undefined],
      ['just before the end', END - 1, undefined],
      ['at the end', END, /holds no certificate that is valid now: "CN=a".* expired on 2030-06-01/],
    ])('%s', async (_name, now, message) => {
      const { faults } = await loadIdentity(tlsSettings({ chain: issued.certificate }), now);
      expect(faults.map((fault) => fault.message)).toEqual(message ? [expect.stringMatching(message)] : []);
    });

    it('one valid anchor is enough', async () => {
      const chain = await Promise.all([
        certificate('over', START - DAY, START),
        certificate('early', END, END + DAY),
        certificate('valid', START, START + DAY),
      ]);
      const pems = { chain: chain.map((each) => each.certificate).join('') };
      expect((await loadIdentity(tlsSettings(pems), START)).faults).toEqual([]);
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
