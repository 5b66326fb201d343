import crypto, { X509Certificate } from 'node:crypto';
import { isPlainPath } from '../../config/secret.js';
import { type ConfigurationFault } from '../../errors/index.js';
import { GUIDES } from '../../version.js';
import { type Input, describeInput, USE_SIDECAR } from './read-identity.js';

/** One PEM block (https://www.rfc-editor.org/rfc/rfc7468), with real newlines. */
interface PemBlock {
  label: string;
  pem: string;
}

// Also matches labels that RFC 7468 does not allow, so that no block is skipped silently.
const BOUNDARY = /-----(BEGIN|END) ([^-\n]+)-----/g;
/** Matches a boundary or a damaged one. Both patterns work in linear time, because a file may have 1 MiB. */
const BOUNDARY_REMNANT = /---(BEGIN|END)\b/gi;
/**
 * The header lines of a traditional encrypted key (https://www.rfc-editor.org/rfc/rfc1421#section-4.6). If the line breaks are
 * lost, the key follows the initialization vector without a separator. Only the length of the vector, which depends on the
 * cipher, shows where the key begins.
 */
const HEADER =
  /^\s*Proc-Type:\s*4,\s*ENCRYPTED\s*DEK-Info:\s*(DES[\w-]*,\s*[\dA-F]{16}|AES[\w-]*,\s*[\dA-F]{32}|[\w-]+,\s*[\dA-F]+(?=\s))/i;

const CERTIFICATE = /^(X509 )?CERTIFICATE$/;
const KEY = /^((RSA|EC|DSA|ENCRYPTED) )?PRIVATE KEY$/;
const CONVERT = `convert it (${GUIDES}/certificates.md#other-formats)`;
/** The pattern of a block's label, the description of such a block, and what to do if it is in place of a certificate or key. */
type BlockKind = readonly [pattern: RegExp, what: string, remedy?: string];
const BLOCK_KINDS: readonly BlockKind[] = [
  [CERTIFICATE, 'a certificate'],
  [KEY, 'a private key'],
  [/^OPENSSH PRIVATE KEY$/, 'a private key in OpenSSH format (ssh-keygen -p -m PEM converts it)'],
  [/^TSS2 PRIVATE KEY$/, 'a key that only the TPM of its machine can use', USE_SIDECAR],
  [
    /^PKCS#11 PROVIDER URI$/,
    'a PKCS#11 URI, which is the name of a key in an HSM or smart card',
    USE_SIDECAR,
  ],
  [/CERTIFICATE REQUEST$/, 'a certificate request (CSR) in place of the certificate that was issued for it'],
  [/^(PKCS #?7 SIGNED DATA|PKCS7|CMS)$/, 'PKCS#7', CONVERT],
  [/^PKCS12$/, 'PKCS#12 as PEM, which OpenSSL does not read', CONVERT],
  [/^TRUSTED CERTIFICATE$/, "a certificate with OpenSSL's trust settings", CONVERT],
  [/PUBLIC KEY$/, 'a public key, which is also in the certificate'],
  [/CRL$/, 'a certificate revocation list (CRL)'],
  [/PARAMETERS$/, 'the parameters of a key'],
  [/^/, 'a PEM block of another kind'],
];

const TRUNCATED =
  'is truncated: a PEM block in it has no beginning or no end. Copy all of it, from -----BEGIN to -----END. In a .env file, ' +
  'put it in quotes or write \\n for the line breaks.';
/**
 * Matches a block whose line breaks were written as `\n` and then lost their backslash. The base64 of a certificate or key begins
 * with M, because its first byte is 0x30.
 */
const LOST_BREAKS_PATTERN = /^.*\n(nM|nProc-Type|Proc-Type:4)/;
const LOST_BREAKS =
  'holds a PEM block, but its line breaks are lost and cannot be restored. Some programs drop the backslash of \\n in an ' +
  'environment variable, for example systemd if the value is not in quotes. Put the value in double quotes, write the base64 ' +
  'of the whole PEM (base64 -w0), or name its file in a variable that ends in _FILE.';

/** The certificates and keys in an input, and its first fault. */
export class PemContents {
  readonly certificates: X509Certificate[] = [];
  readonly keys: PemBlock[] = [];
  /** The first fault. Later faults are usually consequences of it. */
  fault?: ConfigurationFault;
  #blocks: PemBlock[] = [];

  constructor(readonly input: Input) {
    this.fault = input.fault;
    if (input.text) this.#read(input.text.reveal());
  }

  /** @param text the rest of the message after "the file /run/secrets/key.pem" or "the value" */
  addFault(text: string): void {
    this.fault ??= { ...this.input.location, message: `${describeInput(this.input)} ${text}` };
  }

  /** Checks that the input has certificates and nothing else. With `isShared`, it may also have the private key. */
  expectCertificates(isShared: boolean): void {
    const isKnown = ({ label }: PemBlock) =>
      CERTIFICATE.test(label) ||
      (isShared && /^(?!OPENSSH).*(PRIVATE KEY|PARAMETERS|PROVIDER URI)$/.test(label));
    const other = this.#blocks.find((block) => !isKnown(block));
    if (other) {
      const [, what, remedy = 'remove everything else'] = findBlockKind(other);
      this.addFault(
        `holds ${what}. Only certificates belong there (-----BEGIN CERTIFICATE-----): ${remedy}.`,
      );
    } else if (this.certificates.length === 0) this.addFault('holds no certificate.');
  }

  /** Checks that the input has one private key. */
  expectKey(): void {
    const { length } = this.keys;
    if (length > 1)
      this.addFault(`holds ${length} private keys. Keep only the key of the application certificate.`);
    if (length > 0 || this.#blocks.length === 0) return;
    // In a file that also has the certificate, the other block is in place of the key.
    const other = this.#blocks.find(({ label }) => !CERTIFICATE.test(label)) ?? this.#blocks[0];
    const [, what, remedy] = findBlockKind(other);
    const belongs = 'and no private key (-----BEGIN PRIVATE KEY-----), which belongs there';
    this.addFault(`holds ${what}, ${belongs}${remedy === undefined ? '' : `: ${remedy}`}.`);
  }

  #read(text: string): void {
    const blocks = splitBlocks(text);
    if (!blocks) return this.addFault(TRUNCATED);
    if (blocks.length === 0) return this.addFault(notPemMessage(this.input, text));
    this.#blocks = blocks;
    for (const [index, block] of blocks.entries()) {
      if (LOST_BREAKS_PATTERN.test(block.pem)) return this.addFault(LOST_BREAKS);
      if (KEY.test(block.label)) this.keys.push(block);
      if (!CERTIFICATE.test(block.label)) continue;
      try {
        this.certificates.push(new X509Certificate(block.pem));
      } catch {
        const place = `holds no readable certificate in its PEM block ${index + 1}`;
        return this.addFault(
          `${place}: it is damaged or incomplete${orSmallHeap()}. Download it again from the developer portal.`,
        );
      }
    }
  }
}

/**
 * Splits a PEM text, or the base64 of one, into its blocks. Text around the blocks is ignored. Line breaks may be escaped once or
 * several times, as programs that read environment variables do it.
 * @returns an empty list if the text is not PEM; undefined if a block has no beginning or no end
 */
function splitBlocks(text: string): PemBlock[] | undefined {
  const isPem = /-----(BEGIN|END)/.test(text);
  const decoded = isPem ? text : Buffer.from(text, 'base64').toString();
  if (!isPem && !decoded.includes('-----BEGIN')) return [];
  const lines = decoded.replace(/\\+([nr]?)/g, (escape, letter) => (letter ? '\n' : escape));
  const blocks: PemBlock[] = [];
  let open: { label: string; from: number } | undefined;
  for (const { 0: line, 1: edge, 2: label, index } of lines.matchAll(BOUNDARY)) {
    if (edge === 'END' && open?.label === label)
      blocks.push(rewrapBlock(label, lines.slice(open.from, index)));
    open = edge === 'BEGIN' ? { label, from: index + line.length } : undefined;
  }
  const isWhole = lines.match(BOUNDARY_REMNANT)?.length === 2 * blocks.length;
  return isWhole && blocks.length > 0 ? blocks : undefined;
}

/**
 * Restores the line breaks in the base64 of a block, which may have become blanks or disappeared. Other invalid characters
 * stay, so that OpenSSL refuses the block.
 */
function rewrapBlock(label: string, text: string): PemBlock {
  const body = text.replace(/["']/g, '');
  const [header = '', info = ''] = HEADER.exec(body) ?? [];
  const base64 = body.slice(header.length).replace(/\s+/g, '');
  const start = header && `Proc-Type: 4,ENCRYPTED\nDEK-Info: ${info.replace(/\s/g, '')}\n\n`;
  const lines = start + base64.replace(/.{1,64}/g, '$&\n');
  return { label, pem: `-----BEGIN ${label}-----\n${lines}-----END ${label}-----\n` };
}

/** Describes a block for a message, without any of its text: even the label may contain something secret. */
function findBlockKind({ label }: PemBlock): BlockKind {
  return BLOCK_KINDS.find(([pattern]) => pattern.test(label)) as BlockKind;
}

function notPemMessage({ location: { option }, path }: Input, text: string): string {
  return path === undefined && isPlainPath(text.trim())
    ? `is not PEM. It looks like a path: give a file as ${option}: { file: '...' }, or in a variable whose name ends in _FILE.`
    : `is not PEM (text with -----BEGIN in it), and not the base64 of PEM: ${CONVERT}.`;
}

export const SMALL_HEAP =
  'the secure heap of this process is too small for it: give --secure-heap a larger value, or leave it out';

/** If the heap of `--secure-heap` is full, OpenSSL has the errors of a damaged key or certificate. */
export function orSmallHeap(): string {
  // Other runtimes lack the function.
  const { secureHeapUsed } = crypto as Partial<typeof crypto>;
  return secureHeapUsed?.()?.total ? `, or ${SMALL_HEAP}` : '';
}
