import { X509Certificate } from 'node:crypto';
import { type ConfigurationFault } from '../../errors/index.js';
import {
  type UnsupportedFormat,
  unsupportedBlock,
  unsupportedBytes,
  type Purpose,
} from './unsupported-format.js';
import { fault, nameOf, pathOf, type ReadInput } from './read-input.js';
import { MAX_BLOCKS, readPemText, type PemBlock } from './pem-text.js';

export interface ParsedCertificate {
  x509: X509Certificate;
  pem: string;
}

/** What an input holds, whatever it is for. Its only faults so far are those of reading it. */
export interface PemContents {
  input: ReadInput;
  certificates: ParsedCertificate[];
  keys: PemBlock[];
  unsupported: UnsupportedFormat[];
  faults: ConfigurationFault[];
}

const CERTIFICATE_LABELS = new Set(['CERTIFICATE', 'X509 CERTIFICATE']);
/** `openssl ecparam -genkey` writes them before the key, which contains them too. */
const KEY_PARAMETERS = 'EC PARAMETERS';
const KEY_LABEL = /^((RSA|EC|DSA|ENCRYPTED) )?PRIVATE KEY$/;

export function readContents(input: ReadInput, purpose: Purpose): PemContents {
  const contents: PemContents = { input, certificates: [], keys: [], unsupported: [], faults: [] };
  if (input.content === undefined) {
    if (input.fault) contents.faults.push(input.fault);
    return contents;
  }
  const file = pathOf(input, '<file>');
  const text = readPemText(input.content.bytes());
  if (text.truncated) contents.faults.push(fault(input, truncated(input)));
  if (text.tooMany) contents.faults.push(fault(input, tooMany(input)));
  if (text.binary) {
    const format = unsupportedBytes(text.binary, purpose, file);
    if (format) contents.unsupported.push(format);
    else contents.faults.push(fault(input, notPem(input, purpose, text.binary)));
  }
  for (const [index, block] of text.blocks.entries()) {
    if (CERTIFICATE_LABELS.has(block.label)) addCertificate(contents, block, index + 1);
    else if (KEY_LABEL.test(block.label)) contents.keys.push(block);
    else if (purpose !== 'key' || block.label !== KEY_PARAMETERS)
      contents.unsupported.push(unsupportedBlock(block.label, purpose, file));
  }
  return contents;
}

function addCertificate(contents: PemContents, block: PemBlock, place: number): void {
  try {
    contents.certificates.push({ x509: new X509Certificate(block.pem), pem: block.pem });
  } catch {
    const where = `block ${place} of ${nameOf(contents.input)}`;
    contents.faults.push(
      fault(
        contents.input,
        `${where} is no readable certificate: it is damaged or cut. Download it anew from the developer portal.`,
      ),
    );
  }
}

function truncated(input: ReadInput): string {
  const message = `${nameOf(input)} is truncated: a PEM block in it has no beginning or no end. Copy all of it, from -----BEGIN to -----END.`;
  return input.path === undefined
    ? `${message} In a .env file, put it in quotes or write \\n for the line breaks.`
    : message;
}

function tooMany(input: ReadInput): string {
  return `${nameOf(input)} holds more than ${MAX_BLOCKS} PEM blocks: that is not what belongs there. Check the path.`;
}

function notPem(input: ReadInput, purpose: Purpose, bytes: Buffer): string {
  const begins = purpose === 'key' ? '-----BEGIN PRIVATE KEY-----' : '-----BEGIN CERTIFICATE-----';
  const message = `${nameOf(input)} holds no PEM (text that begins with ${begins}), nor the base64 of one.`;
  return input.path === undefined && looksLikePath(bytes) ? `${message} ${pathHint(input)}` : message;
}

function looksLikePath(bytes: Buffer): boolean {
  return (
    bytes.length < 300 &&
    /^\s*[\w.~:/\\ -]*(\/|\\|\.(pem|crt|cer|key|der))[\w.~:/\\ -]*\s*$/.test(bytes.toString('utf8'))
  );
}

function pathHint({ option, variable }: ReadInput): string {
  const byVariable = variable && !variable.endsWith('_FILE') ? `, or set ${variable}_FILE` : '';
  return `It looks like a path: give a file as ${option}: { file: '...' }${byVariable}.`;
}
