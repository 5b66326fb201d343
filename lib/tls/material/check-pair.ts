import { type KeyObject } from 'node:crypto';
import { describeCertificate } from '../certificate-summary.js';
import { type ParsedCertificate, type PemContents } from './pem-contents.js';

const name = ({ summary }: ParsedCertificate) => describeCertificate(summary);

/** Checks that the key belongs to the first certificate. If it does not, says which of the usual mistakes was made. */
export function checkPair(
  certificate: PemContents,
  privateKey: PemContents,
  key: KeyObject,
  chain: PemContents | undefined,
): void {
  const [first, ...rest] = certificate.certificates;
  const fits = ({ x509 }: ParsedCertificate) => x509.checkPrivateKey(key);
  const inChain = chain?.certificates.find(fits);
  const place = rest.findIndex(fits);
  if (fits(first)) {
    if (inChain)
      chain?.refuse(
        `holds the application certificate itself, ${name(inChain)}: whoever has its key could pose as the service. Put the service's public chain from the developer portal there, and nothing else.`,
      );
  } else if (place >= 0) {
    certificate.refuse(
      `begins with a certificate of the chain, ${name(first)}; the application certificate, ${name(rest[place])}, comes at place ${place + 2}. Put the application certificate first.`,
    );
  } else if (chain && inChain) {
    const { option, path } = chain.input;
    certificate.refuse(
      `holds another certificate than that of the private key, which stands in ${option}${path ? ` (${path})` : ''}: application certificate and chain are swapped. Exchange the two.`,
    );
  } else if (first.x509.ca) {
    certificate.refuse(
      `begins with a certificate authority's certificate, ${name(first)}, and has none that fits the private key. Put the application certificate (CRT) there, first; the service's chain belongs in tls.chain.`,
    );
  } else {
    privateKey.refuse(
      `holds the key of another certificate, not of ${name(first)}. Take key and certificate from the same download of the developer portal.`,
    );
  }
}
