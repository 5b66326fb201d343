import { formatDate, daysLeft, describeCertificate, WARNING_DAYS } from '../certificate-summary.js';
import { type PemContents } from './pem-contents.js';

const RENEW_CHAIN = 'Download the chain anew from the developer portal.';

/** Checks the dates of the application certificate. `now` in milliseconds since the epoch. */
export function checkDates(contents: PemContents, now: number): void {
  const summary = contents.certificates[0]?.summary;
  if (!summary) return;
  const name = `the certificate ${describeCertificate(summary)}${contents.input.inFile}`;
  if (now >= summary.validTo.getTime()) {
    contents.fail(
      `${name} expired on ${formatDate(summary.validTo)}, and this machine's clock says ${formatDate(now)}. Generate a new one in the developer portal and put it there with its new key.`,
    );
  } else if (now < summary.validFrom.getTime()) {
    contents.fail(
      `${name} is not valid before ${formatDate(summary.validFrom)}, and this machine's clock says ${formatDate(now)}. Check the clock, or wait.`,
    );
  }
}

/**
 * Checks the dates of the trust anchors. With no valid one, no server can be verified.
 * @returns warnings about those that have expired or expire soon
 */
export function checkChainDates(contents: PemContents, now: number): string[] {
  const { input, certificates } = contents;
  const chain = certificates.map(({ summary }) => summary);
  const expired = chain.filter(({ validTo }) => now >= validTo.getTime());
  const early = chain.filter(({ validFrom }) => now < validFrom.getTime());
  const [first] = chain;
  if (first && expired.length + early.length === chain.length) {
    const why = expired.includes(first)
      ? `expired on ${formatDate(first.validTo)}`
      : `is not valid before ${formatDate(first.validFrom)}`;
    contents.fail(
      `no certificate of the service's chain${input.inFile} is valid now: ${describeCertificate(first)} ${why}. ${RENEW_CHAIN}`,
    );
  }
  const ending = chain.filter((each) => !expired.includes(each) && daysLeft(each, now) < WARNING_DAYS[0]);
  return [...expired, ...ending].map((each) => {
    const verb = expired.includes(each) ? 'expired' : 'expires';
    return `${input.option}: ${describeCertificate(each)} of the service's chain ${verb} on ${formatDate(each.validTo)}. ${RENEW_CHAIN}`;
  });
}
