import { X509Certificate } from 'node:crypto';
import { type CertificateSummary, type ConfigurationFault } from '../../errors/index.js';
import { summarize } from '../certificate-summary.js';
import { MAX_BLOCKS, readPemText, type PemBlock } from './pem-text.js';
import { type ReadInput } from './read-input.js';
import {
  type Purpose,
  unsupportedBlock,
  unsupportedBytes,
  type UnsupportedFormat,
} from './unsupported-format.js';

const CERTIFICATE_LABELS = new Set(['CERTIFICATE', 'X509 CERTIFICATE']);
/** `openssl ecparam -genkey` writes them before the key, which contains them too. */
const KEY_PARAMETERS = 'EC PARAMETERS';
const KEY_LABEL = /^((RSA|EC|DSA|ENCRYPTED) )?PRIVATE KEY$/;

export interface ParsedCertificate {
  pem: string;
  x509: X509Certificate;
  summary: CertificateSummary;
}

/** What an input holds, and all that is wrong with it. */
export class PemContents {
  readonly input: ReadInput;
  readonly purpose: Purpose;
  readonly certificates: ParsedCertificate[] = [];
  readonly keys: PemBlock[] = [];
  readonly unsupported: UnsupportedFormat[] = [];
  readonly faults: ConfigurationFault[] = [];

  constructor(input: ReadInput, purpose: Purpose) {
    this.input = input;
    this.purpose = purpose;
    if (input.fault) this.faults.push(input.fault);
    if (input.bytes) this.#read(input.bytes);
  }

  /** Notes a fault. @param says goes on after "the file /run/secrets/key.pem" or "the value" */
  refuse(says: string): void {
    this.fail(`${this.input.name} ${says}`);
  }

  /** Notes a fault. */
  fail(message: string): void {
    this.faults.push(this.input.faultOf(message));
  }

  #read(bytes: Buffer): void {
    const { input, purpose } = this;
    const { blocks, truncated, tooMany, binary } = readPemText(bytes);
    if (truncated) this.refuse(truncation(input));
    if (tooMany) {
      this.refuse(
        `holds more than ${MAX_BLOCKS} PEM blocks: that is not what belongs there. Check the path.`,
      );
    }
    if (binary) {
      const format = unsupportedBytes(binary, purpose, input.argument);
      if (format) this.unsupported.push(format);
      else this.refuse(notPem(input, purpose, binary));
    }
    for (const [index, block] of blocks.entries()) {
      const { label, pem } = block;
      if (CERTIFICATE_LABELS.has(label)) this.#addCertificate(pem, index + 1);
      else if (KEY_LABEL.test(label)) this.keys.push(block);
      else if (purpose !== 'key' || label !== KEY_PARAMETERS)
        this.unsupported.push(unsupportedBlock(label, purpose, input.argument));
    }
  }

  #addCertificate(pem: string, place: number): void {
    try {
      const x509 = new X509Certificate(pem);
      this.certificates.push({ pem, x509, summary: summarize(x509) });
    } catch {
      this.fail(
        `block ${place} of ${this.input.name} is no readable certificate: it is damaged or cut. Download it anew from the developer portal.`,
      );
    }
  }
}

function truncation({ path }: ReadInput): string {
  const says =
    'is truncated: a PEM block in it has no beginning or no end. Copy all of it, from -----BEGIN to -----END.';
  return path === undefined
    ? `${says} In a .env file, put it in quotes or write \\n for the line breaks.`
    : says;
}

function notPem({ option, variable, path }: ReadInput, purpose: Purpose, bytes: Buffer): string {
  const begins = purpose === 'key' ? '-----BEGIN PRIVATE KEY-----' : '-----BEGIN CERTIFICATE-----';
  const says = `holds no PEM (text that begins with ${begins}), nor the base64 of one.`;
  if (path !== undefined || !looksLikePath(bytes)) return says;
  const byVariable = variable && !variable.endsWith('_FILE') ? `, or set ${variable}_FILE` : '';
  return `${says} It looks like a path: give a file as ${option}: { file: '...' }${byVariable}.`;
}

function looksLikePath(bytes: Buffer): boolean {
  return (
    bytes.length < 300 &&
    /^\s*[\w.~:/\\ -]*(\/|\\|\.(pem|crt|cer|key|der))[\w.~:/\\ -]*\s*$/.test(bytes.toString('utf8'))
  );
}
