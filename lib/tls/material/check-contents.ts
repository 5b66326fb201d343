import { type ConfigurationFault, type OptionLocation } from '../../errors/index.js';
import { type Purpose } from './unsupported-format.js';
import { fault, nameOf, type ReadInput } from './read-input.js';
import { type PemContents } from './pem-contents.js';

const EXPECTED: Readonly<Record<Purpose, string>> = {
  certificate: 'the application certificate',
  key: 'the private key',
  chain: "the service's public chain",
};

/** Checks that each option holds what it is for: files swapped, one without the other, a key beside certificates. */
export function checkContents(
  certificate: PemContents | undefined,
  privateKey: PemContents | undefined,
  chain: PemContents | undefined,
): ConfigurationFault[] {
  const faults: ConfigurationFault[] = [];
  if (certificate && privateKey && areSwapped(certificate, privateKey)) {
    faults.push(fault(certificate.input, swapped(certificate.input, privateKey.input)));
  } else {
    if (certificate) faults.push(...checkCertificates(certificate, 'certificate'));
    if (privateKey) faults.push(...checkKeys(privateKey));
  }
  if (chain) faults.push(...checkCertificates(chain, 'chain'));
  if (certificate && !privateKey) faults.push(counterpart(certificate.input, 'key'));
  if (privateKey && !certificate) faults.push(counterpart(privateKey.input, 'certificate'));
  return faults;
}

function areSwapped(certificate: PemContents, privateKey: PemContents): boolean {
  const holdsKeyOnly = certificate.keys.length > 0 && certificate.certificates.length === 0;
  return holdsKeyOnly && privateKey.certificates.length > 0 && privateKey.keys.length === 0;
}

function swapped(certificate: ReadInput, privateKey: ReadInput): string {
  const other = `${privateKey.option}${privateKey.variable ? ` (${privateKey.variable})` : ''}`;
  return `${nameOf(certificate)} holds the private key, and ${other} holds the certificate: the two are swapped. Exchange them.`;
}

function checkCertificates(contents: PemContents, purpose: 'certificate' | 'chain'): ConfigurationFault[] {
  const { input, certificates, keys, unsupported, faults } = contents;
  const found = [...faults];
  const hasKey = keys.length > 0 || unsupported.some(({ secret }) => secret);
  if (hasKey && certificates.length > 0) {
    found.push(
      fault(
        input,
        `${nameOf(input)} holds a private key beside certificates. Take it out: the key belongs in tls.privateKey alone, and nowhere else.`,
      ),
    );
  } else if (hasKey) {
    const what = unsupported[0]?.what ?? 'a private key';
    found.push(fault(input, `${nameOf(input)} holds ${what} where ${EXPECTED[purpose]} is expected.`));
  } else if (unsupported.length > 0) {
    found.push(...unsupportedFaults(contents, purpose));
  } else if (certificates.length === 0 && found.length === 0) {
    found.push(
      fault(
        input,
        `${nameOf(input)} holds PEM blocks, but no certificate (-----BEGIN CERTIFICATE-----). ${capital(EXPECTED[purpose])} is expected.`,
      ),
    );
  }
  return found;
}

function checkKeys(contents: PemContents): ConfigurationFault[] {
  const { input, certificates, keys, unsupported, faults } = contents;
  if (faults.length > 0) return faults;
  if (keys.length === 1) return unsupportedFaults(contents, 'key');
  if (keys.length > 1) {
    return [
      fault(
        input,
        `${nameOf(input)} holds ${keys.length} private keys. Leave only that of the application certificate.`,
      ),
    ];
  }
  if (unsupported.length > 0) return unsupportedFaults(contents, 'key');
  if (certificates.length > 0)
    return [fault(input, `${nameOf(input)} holds a certificate where the private key is expected.`)];
  return [
    fault(input, `${nameOf(input)} holds PEM blocks, but no private key (-----BEGIN PRIVATE KEY-----).`),
  ];
}

/** One for each kind of block that does not belong there. */
function unsupportedFaults(
  { input, certificates, keys, unsupported }: PemContents,
  purpose: Purpose,
): ConfigurationFault[] {
  const isBeside = (purpose === 'key' ? keys : certificates).length > 0;
  const rest = isBeside ? `beside ${EXPECTED[purpose]}` : `not ${EXPECTED[purpose]} as PEM`;
  const formats = new Map(unsupported.map((format) => [format.what, format]));
  return [...formats.values()].map(({ what, remedy }) =>
    fault(input, `${nameOf(input)} holds ${what}${isBeside ? ' ' : ', '}${rest}. ${remedy}`),
  );
}

/** The fault of the option that is missing. */
function counterpart(present: ReadInput, missing: 'key' | 'certificate'): ConfigurationFault {
  const [from, to, option] =
    missing === 'key'
      ? [/CERTIFICATE(_FILE)?$/, 'PRIVATE_KEY', 'tls.privateKey']
      : [/PRIVATE_KEY(_FILE)?$/, 'CERTIFICATE', 'tls.certificate'];
  const variable =
    present.variable && from.test(present.variable) ? present.variable.replace(from, to) : undefined;
  const location: OptionLocation = { option, variable };
  return missing === 'key'
    ? fault(
        location,
        `is missing: ${present.option} is set, and a certificate is of no use without its private key. Set the key, or leave out both.`,
      )
    : fault(
        location,
        `is missing: ${present.option} is set, and a private key is of no use without its certificate. Set the certificate, or leave out both.`,
      );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
