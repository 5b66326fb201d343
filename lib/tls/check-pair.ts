import { type KeyObject } from 'node:crypto';
import { type ConfigurationFault } from '../errors/index.js';
import { fault, nameOf } from './input.js';
import { type ParsedCertificate, type PemContents } from './pem-contents.js';
import { describeCertificate, summarize } from './summary.js';

const name = ({ x509 }: ParsedCertificate) => describeCertificate(summarize(x509));

/** Does the key belong to the first certificate? Where not, says which of the usual mistakes it is. */
export function checkPair(
  certificate: PemContents,
  privateKey: PemContents,
  key: KeyObject,
  chain: PemContents | undefined,
): ConfigurationFault | undefined {
  const [first, ...rest] = certificate.certificates;
  if (first.x509.checkPrivateKey(key)) return undefined;

  const place = rest.findIndex(({ x509 }) => x509.checkPrivateKey(key));
  if (place >= 0) {
    return fault(
      certificate.input,
      `${nameOf(certificate.input)} begins with a certificate of the chain, ${name(first)}; the application certificate, ${name(rest[place])}, comes at place ${place + 2}. Put the application certificate first.`,
    );
  }
  if (chain?.certificates.some(({ x509 }) => x509.checkPrivateKey(key))) {
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
