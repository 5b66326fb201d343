import { type ConfigurationFault, describeLocation } from '../../errors/index.js';
import { type PemContents } from './pem-contents.js';
import { type Purpose } from './unsupported-format.js';

const EXPECTED: Readonly<Record<Purpose, string>> = {
  certificate: 'the application certificate',
  key: 'the private key',
  chain: "the service's public chain",
};

/** Checks that each option holds what it is for: files swapped, a key beside certificates. */
export function checkContents(
  certificate: PemContents | undefined,
  privateKey: PemContents | undefined,
  chain: PemContents | undefined,
): void {
  if (certificate && privateKey && areSwapped(certificate, privateKey)) {
    const other = describeLocation(privateKey.input);
    certificate.refuse(
      `holds the private key, and ${other} holds the certificate: the two are swapped. Exchange them.`,
    );
  } else {
    if (certificate) checkCertificates(certificate);
    if (privateKey) checkKeys(privateKey);
  }
  if (chain) checkCertificates(chain);
}

/** The fault where only one of the two is set: of the option that is missing. */
export function missingCounterpart(
  certificate: PemContents | undefined,
  privateKey: PemContents | undefined,
): ConfigurationFault | undefined {
  const present = certificate ?? privateKey;
  if (!present || (certificate && privateKey)) return undefined;
  const [option, what, from, to] = certificate
    ? ['tls.privateKey', 'key', /CERTIFICATE(_FILE)?$/, 'PRIVATE_KEY']
    : ['tls.certificate', 'certificate', /PRIVATE_KEY(_FILE)?$/, 'CERTIFICATE'];
  const variable = present.input.variable?.replace(from, to);
  const message = `is missing: ${present.input.option} is set, and one is of no use without the other. Set the ${what}, or leave out both.`;
  return { option, variable, message };
}

function areSwapped(certificate: PemContents, privateKey: PemContents): boolean {
  const holdsKeyOnly = certificate.keys.length > 0 && certificate.certificates.length === 0;
  return holdsKeyOnly && privateKey.certificates.length > 0 && privateKey.keys.length === 0;
}

function checkCertificates(contents: PemContents): void {
  const { purpose, certificates, keys, unsupported } = contents;
  const expected = EXPECTED[purpose];
  const hasKey = keys.length > 0 || unsupported.some(({ secret }) => secret);
  if (hasKey && certificates.length > 0) {
    contents.refuse(
      'holds a private key beside certificates. Take it out: the key belongs in tls.privateKey alone, and nowhere else.',
    );
  } else if (hasKey) {
    contents.refuse(`holds ${unsupported[0]?.what ?? 'a private key'} where ${expected} is expected.`);
  } else if (unsupported.length > 0) {
    refuseUnsupported(contents, certificates.length > 0);
  }
}

function checkKeys(contents: PemContents): void {
  const { certificates, keys, unsupported, faults } = contents;
  if (faults.length > 0) return;
  if (keys.length > 1) {
    contents.refuse(`holds ${keys.length} private keys. Leave only that of the application certificate.`);
  } else if (unsupported.length > 0) {
    refuseUnsupported(contents, keys.length > 0);
  } else if (keys.length === 0) {
    contents.refuse(
      certificates.length > 0
        ? 'holds a certificate where the private key is expected.'
        : 'holds PEM blocks, but no private key (-----BEGIN PRIVATE KEY-----).',
    );
  }
}

/** One fault for each kind of block that does not belong there. */
function refuseUnsupported(contents: PemContents, isBeside: boolean): void {
  const expected = EXPECTED[contents.purpose];
  const rest = isBeside ? ` beside ${expected}` : `, not ${expected} as PEM`;
  const formats = new Map(contents.unsupported.map((format) => [format.what, format]));
  for (const { what, remedy } of formats.values()) contents.refuse(`holds ${what}${rest}. ${remedy}`);
}
