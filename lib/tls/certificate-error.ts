import {
  ServiceCertificateError,
  type CertificateSummary,
  type DescribeOption,
  explain,
  type Explanation,
  type Words,
} from '../errors/index.js';
import { isUnsupportedInTls13 } from '../exchange/client-certificate.js';
import { formatDate } from '../time/time.js';
import { describeCertificate } from './certificate-summary.js';

/** A client certificate that a server refused, or required and did not get. */
export interface RefusedCertificate {
  /** Undefined if none is offered to the server. */
  certificate?: CertificateSummary;
  keyType?: string;
  /** The issuer of the last certificate that we send; undefined if that certificate is self-signed. */
  lastIssuer?: string;
  /** The code of the TLS alert or of OpenSSL, or `HTTP` and a status. */
  reason?: string;
  /** The host of the proxy that leads to the server. */
  proxy?: string;
}

/** Explains a refusal of the client certificate. The words have the verdict: `certificate-refused` or `certificate-not-sent`. */
export function explainCertificate(
  words: Words,
  refused: RefusedCertificate,
  describeOption: DescribeOption,
): Explanation {
  const { certificate, keyType, ...facts } = refused;
  const { issuer, fingerprint256: fingerprint, validFrom, validTo } = certificate ?? {};
  const [startsAt = -Infinity, endsAt = Infinity] = [validFrom?.getTime(), validTo?.getTime()];
  const own = {
    ...facts,
    keyType,
    certificate: certificate && describeCertificate(certificate),
    issuer,
    fingerprint,
    validFrom: validFrom && formatDate(validFrom),
    validTo: validTo && formatDate(validTo),
  };
  const known = [
    ...words,
    endsAt <= Date.now() && 'expired',
    startsAt > Date.now() && 'not-yet-valid',
    isUnsupportedInTls13(keyType) && 'unsupported-key',
  ];
  return explain(known, own, { describeOption });
}

/** Makes the error for a client certificate that a server refused, or required and did not get. */
export function certificateRefusedError(
  words: Words,
  refused: RefusedCertificate,
  describeOption: DescribeOption,
): ServiceCertificateError {
  const explanation = explainCertificate(words, refused, describeOption);
  const { certificate } = refused;
  const message = `${explanation.message} ${explanation.hint}`;
  const details = { code: 'certificate_refused', certificate, ...explanation } as const;
  return new ServiceCertificateError([{ option: 'tls.certificate', message }], details);
}
