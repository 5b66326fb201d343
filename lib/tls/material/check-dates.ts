import { type CertificateSummary, type ConfigurationFault } from '../../errors/index.js';
import { fault, type ReadInput } from './read-input.js';
import { date, daysLeft, describeCertificate, WARNING_DAYS } from '../certificate-summary.js';

/** Checks the dates of the application certificate. `now` in milliseconds since the epoch. */
export function checkDates(
  input: ReadInput,
  summary: CertificateSummary,
  now: number,
): ConfigurationFault | undefined {
  const name = describeCertificate(summary) + inFile(input);
  if (now >= summary.validTo.getTime()) {
    return fault(
      input,
      `the certificate ${name} expired on ${date(summary.validTo)}. Generate a new one in the developer portal and put it there with its new key.`,
    );
  }
  if (now < summary.validFrom.getTime()) {
    return fault(
      input,
      `the certificate ${name} is not valid before ${date(summary.validFrom)}, and this machine's clock says ${date(new Date(now))}. Check the clock, or wait.`,
    );
  }
  return undefined;
}

/** Checks the dates of the trust anchors. With no valid one, no server can be verified. */
export function checkChainDates(
  input: ReadInput,
  chain: readonly CertificateSummary[],
  now: number,
): { fault?: ConfigurationFault; warnings: string[] } {
  const ended = chain.filter((summary) => now >= summary.validTo.getTime());
  const early = chain.filter((summary) => now < summary.validFrom.getTime());
  if (ended.length + early.length === chain.length) {
    const first = chain[0];
    const why = ended.includes(first)
      ? `expired on ${date(first.validTo)}`
      : `is not valid before ${date(first.validFrom)}`;
    const message = `no certificate of the service's chain${inFile(input)} is valid now: ${describeCertificate(first)} ${why}. Download the chain anew from the developer portal.`;
    return { fault: fault(input, message), warnings: [] };
  }
  const soon = chain.filter(
    (summary) => !ended.includes(summary) && daysLeft(summary, now) < WARNING_DAYS[0],
  );
  return {
    warnings: [
      ...ended.map((summary) => chainWarning(input, summary, 'expired on')),
      ...soon.map((summary) => chainWarning(input, summary, 'expires on')),
    ],
  };
}

function inFile({ path }: ReadInput): string {
  return path === undefined ? '' : ` in ${path}`;
}

function chainWarning({ option }: ReadInput, summary: CertificateSummary, verb: string): string {
  return `${option}: ${describeCertificate(summary)} of the service's chain ${verb} ${date(summary.validTo)}. Download the chain anew from the developer portal.`;
}
