import { type KeyObject } from 'node:crypto';
import { type ConfigurationFault } from '../../errors/index.js';
import { fault, nameOf, type ReadInput } from './read-input.js';
import { type ParsedCertificate, type PemContents } from './pem-contents.js';
import { describeCertificate, summarize } from '../certificate-summary.js';

const name = ({ x509 }: ParsedCertificate) => describeCertificate(summarize(x509));

/** Checks that the key belongs to the first certificate. If it does not, says which of the usual mistakes was made. */
export function checkPair(
  certificate: PemContents,
  privateKey: PemContents,
  key: KeyObject,
  chain: PemContents | undefined,
): ConfigurationFault | undefined {
  const [first, ...rest] = certificate.certificates;
  const inChain = chain?.certificates.find(({ x509 }) => x509.checkPrivateKey(key));
  if (first.x509.checkPrivateKey(key)) return chain && inChain && notAnAnchor(chain.input, inChain);

  const place = rest.findIndex(({ x509 }) => x509.checkPrivateKey(key));
  if (place >= 0) {
    return fault(
      certificate.input,
      `${nameOf(certificate.input)} begins with a certificate of the chain, ${name(first)}; the application certificate, ${name(rest[place])}, comes at place ${place + 2}. Put the application certificate first.`,
    );
  }
  if (chain && inChain) {
    return fault(
      certificate.input,
      `${nameOf(certificate.input)} holds another certificate than that of the private key, which stands in ${chain.input.option}${chain.input.path ? ` (${chain.input.path})` : ''}: application certificate and chain are swapped. Exchange the two.`,
    );
  }
  if (first.x509.ca) {
    return fault(
      certificate.input,
      `${nameOf(certificate.input)} begins with a certificate authority's certificate, ${name(first)}, and has none that fits the private key. Put the application certificate (CRT) there, first; the service's chain belongs in tls.chain.`,
    );
  }
  return fault(
    privateKey.input,
    `${nameOf(privateKey.input)} holds the key of another certificate, not of ${name(first)}. Take key and certificate from the same download of the developer portal.`,
  );
}

function notAnAnchor(input: ReadInput, certificate: ParsedCertificate): ConfigurationFault {
  return fault(
    input,
    `${nameOf(input)} holds the application certificate itself, ${name(certificate)}: whoever has its key could pose as the service. Put the service's public chain from the developer portal there, and nothing else.`,
  );
}
