import { describe, expect, it } from '@jest/globals';
import { checkChainDates, checkDates } from '../../../../lib/tls/material/check-dates.js';
import { PemContents, type ParsedCertificate } from '../../../../lib/tls/material/pem-contents.js';
import { ReadInput } from '../../../../lib/tls/material/read-input.js';
import { daysLeft } from '../../../../lib/tls/certificate-summary.js';

const DAY = 86_400_000;
const START = Date.UTC(2030, 0, 1);
const END = Date.UTC(2030, 5, 1);
const certificate = (from = START, to = END, subject = 'CN=a') => ({
  subject,
  issuer: 'CN=i',
  fingerprint256: 'AB',
  validFrom: new Date(from),
  validTo: new Date(to),
});

/** An input with certificates of these dates. */
function contentsOf(...summaries: ParsedCertificate['summary'][]): PemContents {
  const contents = new PemContents(
    new ReadInput({ option: 'tls.chain', path: '/a.pem' }, 'not read'),
    'chain',
  );
  contents.faults.length = 0;
  contents.certificates.push(...summaries.map((summary) => ({ summary }) as ParsedCertificate));
  return contents;
}

it.each([
  [START - 1, /is not valid before 2030-01-01T00:00:00Z, and this machine's clock says 2029-12-31T23:59:59Z/],
  [START, undefined],
  [END - 1, undefined],
  [END, /the certificate "CN=a" \(SHA-256 AB\) in \/a\.pem expired on 2030-06-01T00:00:00Z/],
])('the dates of a certificate, to the millisecond: %d', (now, message) => {
  const contents = contentsOf(certificate());
  checkDates(contents, now);
  expect(contents.faults[0]?.message).toEqual(message && expect.stringMatching(message));
});

describe('The dates of a chain', () => {
  it.each([
    [
      'before all of them',
      START - 1,
      /chain in \/a\.pem is valid now: "CN=a".* is not valid before 2030-01-01/,
    ],
    ['at the beginning', START, undefined],
    ['just before the end', END - 1, undefined],
    ['at the end', END, /chain in \/a\.pem is valid now: "CN=a".* expired on 2030-06-01/],
  ])('%s', (_name, now, message) => {
    const contents = contentsOf(certificate());
    checkChainDates(contents, now);
    expect(contents.faults[0]?.message).toEqual(message && expect.stringMatching(message));
  });

  it('one valid anchor is enough; one that is over, or within 30 days of it, is warned of', () => {
    const chain = contentsOf(
      certificate(START - DAY, START, 'CN=over'),
      certificate(END, END + DAY, 'CN=early'),
      certificate(START, START + 30 * DAY - 1, 'CN=soon'),
      certificate(START, START + 30 * DAY, 'CN=later'),
    );
    const warnings = checkChainDates(chain, START);
    expect(chain.faults).toEqual([]);
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
])('days left at %d', (now, days) => expect(daysLeft(certificate(), now)).toBe(days));
