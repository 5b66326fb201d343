import { X509Certificate } from 'node:crypto';
import { isPlainPath } from '../../config/read-file.js';
import { type ConfigurationFault } from '../../errors/index.js';
import { GUIDES } from '../../version.js';
import { type Input, nameOf } from './read-identity.js';

/** One PEM block (RFC 7468), with real newlines. */
interface PemBlock {
  label: string;
  pem: string;
}

// Also finds labels that RFC 7468, 3 does not allow: no block may be skipped in silence.
const BOUNDARY = /-----(BEGIN|END) ([^-\n]+)-----/g;
/** A boundary, or a part of one. Both patterns read the text once, as a file may have 1 MiB. */
const REMNANT = /---(BEGIN|END)\b/gi;

const CERTIFICATE = /^(X509 )?CERTIFICATE$/;
const KEY = /^((RSA|EC|DSA|ENCRYPTED) )?PRIVATE KEY$/;
const KINDS: readonly [RegExp, string][] = [
  [CERTIFICATE, 'a certificate'],
  [KEY, 'a private key'],
  [/^OPENSSH PRIVATE KEY$/, 'a private key in OpenSSH format (ssh-keygen -p -m PEM converts it)'],
  [/CERTIFICATE REQUEST$/, 'a certificate request (CSR) in place of the certificate that was issued for it'],
];

const TRUNCATED =
  'is truncated: a PEM block in it has no beginning or no end. Copy all of it, from -----BEGIN to -----END. In a .env file, ' +
  'put it in quotes or write \\n for the line breaks.';

/** The certificates and keys of an input, and what is wrong with it. */
export class PemContents {
  readonly input: Input;
  readonly certificates: X509Certificate[] = [];
  readonly keys: PemBlock[] = [];
  /** The first; what is wrong after it mostly follows from it. */
  fault?: ConfigurationFault;
  #blocks: PemBlock[] = [];

  constructor(input: Input) {
    this.input = input;
    this.fault = input.fault;
    if (input.text) this.#read(input.text.reveal());
  }

  /** @param says goes on after "the file /run/secrets/key.pem" or "the value" */
  refuse(says: string): void {
    this.fault ??= { ...this.input.location, message: `${nameOf(this.input)} ${says}` };
  }

  /** Checks that it holds certificates, and nothing else; with `isShared`, the key too. */
  expectCertificates(isShared: boolean): void {
    const isKnown = ({ label }: PemBlock) =>
      CERTIFICATE.test(label) || (isShared && /^(?!OPENSSH).*(PRIVATE KEY|PARAMETERS)$/.test(label));
    const other = this.#blocks.find((block) => !isKnown(block));
    if (other)
      this.refuse(
        `holds ${kindOf(other)}. Only certificates belong there (-----BEGIN CERTIFICATE-----): take the rest out.`,
      );
    else if (this.certificates.length === 0) this.refuse('holds no certificate.');
  }

  /** Checks that it holds one private key. */
  expectKey(): void {
    const { length } = this.keys;
    if (length > 1) this.refuse(`holds ${length} private keys. Leave that of the application certificate.`);
    else if (length === 0 && this.#blocks.length > 0)
      this.refuse(
        `holds ${kindOf(this.#blocks[0])}, and no private key (-----BEGIN PRIVATE KEY-----), which belongs there.`,
      );
  }

  #read(text: string): void {
    const blocks = blocksOf(text);
    if (!blocks) return this.refuse(TRUNCATED);
    if (blocks.length === 0) return this.refuse(noPem(this.input, text));
    this.#blocks = blocks;
    for (const [index, block] of blocks.entries()) {
      if (KEY.test(block.label)) this.keys.push(block);
      if (!CERTIFICATE.test(block.label)) continue;
      try {
        this.certificates.push(new X509Certificate(block.pem));
      } catch {
        const place = `holds no readable certificate in its PEM block ${index + 1}`;
        return this.refuse(`${place}: it is damaged or cut. Download it anew from the developer portal.`);
      }
    }
  }
}

/**
 * The blocks of a PEM text with real or `\n`-escaped newlines and anything around them, or of the base64 of that. None if
 * it is no PEM; undefined if a block has no beginning or no end.
 */
function blocksOf(text: string): PemBlock[] | undefined {
  const isPem = /-----(BEGIN|END)/.test(text);
  const decoded = isPem ? text : Buffer.from(text, 'base64').toString();
  if (!isPem && !decoded.includes('-----BEGIN')) return [];
  const lines = decoded.replace(/\\r\\n|\\[rn]|\r\n?/g, '\n').replace(/^[ \t]+/gm, '');
  const blocks: PemBlock[] = [];
  let open: { label: string; from: number } | undefined;
  for (const { 0: line, 1: edge, 2: label, index } of lines.matchAll(BOUNDARY)) {
    if (edge === 'END' && open?.label === label) {
      blocks.push({ label, pem: `${lines.slice(open.from, index + line.length)}\n` });
    }
    open = edge === 'BEGIN' ? { label, from: index } : undefined;
  }
  const isWhole = lines.match(REMNANT)?.length === 2 * blocks.length;
  return isWhole && blocks.length > 0 ? blocks : undefined;
}

/** Nothing of the block, not even its label. */
function kindOf({ label }: PemBlock): string {
  return KINDS.find(([pattern]) => pattern.test(label))?.[1] ?? 'a PEM block of another kind';
}

function noPem({ location: { option }, path }: Input, text: string): string {
  return path === undefined && isPlainPath(text.trim())
    ? `is no PEM. It looks like a path: give a file as ${option}: { file: '...' }, or in a variable whose name ends in _FILE.`
    : `is no PEM (text with -----BEGIN in it), nor the base64 of one: convert it (${GUIDES}/certificates.md#other-formats).`;
}
