import { X509Certificate } from 'node:crypto';
import { type CertificateSummary, type ConfigurationFault } from '../../errors/index.js';
import { summarize } from '../certificate-summary.js';
import { MAX_BLOCKS, readPemText, type PemBlock } from './pem-text.js';
import { type ReadInput } from './read-identity.js';
import {
  type Purpose,
  unsupportedBlock,
  unsupportedBytes,
  type UnsupportedFormat,
} from './unsupported-format.js';

const CERTIFICATE_LABEL = /^(X509 )?CERTIFICATE$/;
/** `openssl ecparam -genkey` writes them before the key, which contains them too. */
const KEY_PARAMETERS = 'EC PARAMETERS';
const KEY_LABEL = /^((RSA|EC|DSA|ENCRYPTED) )?PRIVATE KEY$/;

const EXPECTED: Readonly<Record<Purpose, string>> = {
  certificate: 'the application certificate',
  key: 'the private key',
  chain: "the service's public chain",
};

export interface ParsedCertificate {
  pem: string;
  x509: X509Certificate;
  summary: CertificateSummary;
}

/** The contents of an input, with all faults. */
export class PemContents {
  readonly input: ReadInput;
  readonly certificates: ParsedCertificate[] = [];
  readonly keys: PemBlock[] = [];
  readonly faults: ConfigurationFault[] = [];
  readonly #purpose: Purpose;
  /** By their description. */
  readonly #unsupported = new Map<string, UnsupportedFormat>();

  constructor(input: ReadInput, purpose: Purpose) {
    this.input = input;
    this.#purpose = purpose;
    if (input.fault) this.faults.push(input.fault);
    if (input.bytes) this.#read(input.bytes);
  }

  /** Notes a fault. @param says goes on after "the file /run/secrets/key.pem" or "the value" */
  refuse(says: string): void {
    this.fail(`${this.input.name} ${says}`);
  }

  fail(message: string): void {
    this.faults.push(this.input.faultOf(message));
  }

  /** Checks that it holds certificates, and nothing else. */
  checkCertificates(): void {
    const [unsupported] = this.#unsupported.values();
    const secret = [...this.#unsupported.values()].some((format) => format.secret);
    if (this.keys.length === 0 && !secret) return this.#refuseUnsupported(this.certificates.length > 0);
    this.refuse(
      this.certificates.length > 0
        ? 'holds a private key beside certificates. Take it out: the key belongs in tls.privateKey alone, and nowhere else.'
        : `holds ${unsupported?.what ?? 'a private key'} where ${EXPECTED[this.#purpose]} is expected.`,
    );
  }

  /** Checks that it holds one private key, and nothing else. */
  checkKey(): void {
    const { certificates, keys, faults } = this;
    if (faults.length > 0) return;
    if (keys.length > 1) {
      this.refuse(`holds ${keys.length} private keys. Leave only that of the application certificate.`);
    } else if (keys.length === 1 || this.#unsupported.size > 0) {
      this.#refuseUnsupported(keys.length > 0);
    } else {
      this.refuse(
        certificates.length > 0
          ? 'holds a certificate where the private key is expected.'
          : 'holds PEM blocks, but no private key (-----BEGIN PRIVATE KEY-----).',
      );
    }
  }

  /** One fault for each kind of block that does not belong there. */
  #refuseUnsupported(isBeside: boolean): void {
    const expected = EXPECTED[this.#purpose];
    const rest = isBeside ? ` beside ${expected}` : `, not ${expected} as PEM`;
    for (const { what, remedy } of this.#unsupported.values()) this.refuse(`holds ${what}${rest}. ${remedy}`);
  }

  #read(bytes: Buffer): void {
    const { blocks, truncated, tooMany, binary } = readPemText(bytes);
    if (truncated) this.refuse(truncation(this.input));
    if (tooMany) {
      this.refuse(
        `holds more than ${MAX_BLOCKS} PEM blocks: that is not what belongs there. Check the path.`,
      );
    }
    if (binary) {
      const format = unsupportedBytes(binary, this.#purpose, this.input.argument);
      if (format) this.#unsupported.set(format.what, format);
      else this.refuse(notPem(this.input, this.#purpose, binary));
    }
    for (const [index, block] of blocks.entries()) this.#add(block, index + 1);
  }

  #add(block: PemBlock, place: number): void {
    const { label, pem } = block;
    if (KEY_LABEL.test(label)) this.keys.push(block);
    else if (CERTIFICATE_LABEL.test(label)) {
      try {
        const x509 = new X509Certificate(pem);
        this.certificates.push({ pem, x509, summary: summarize(x509) });
      } catch {
        this.fail(
          `block ${place} of ${this.input.name} is no readable certificate: it is damaged or cut. Download it anew from the developer portal.`,
        );
      }
    } else if (this.#purpose !== 'key' || label !== KEY_PARAMETERS) {
      const format = unsupportedBlock(label, this.#purpose, this.input.argument);
      this.#unsupported.set(format.what, format);
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

function notPem({ location, path }: ReadInput, purpose: Purpose, bytes: Buffer): string {
  const begins = purpose === 'key' ? '-----BEGIN PRIVATE KEY-----' : '-----BEGIN CERTIFICATE-----';
  const says = `holds no PEM (text that begins with ${begins}), nor the base64 of one.`;
  if (path !== undefined || !looksLikePath(bytes)) return says;
  const { option, variable } = location;
  const byVariable = variable && !variable.endsWith('_FILE') ? `, or set ${variable}_FILE` : '';
  return `${says} It looks like a path: give a file as ${option}: { file: '...' }${byVariable}.`;
}

function looksLikePath(bytes: Buffer): boolean {
  return (
    bytes.length < 300 &&
    /^\s*[\w.~:/\\ -]*(\/|\\|\.(pem|crt|cer|key|der))[\w.~:/\\ -]*\s*$/.test(bytes.toString('utf8'))
  );
}
