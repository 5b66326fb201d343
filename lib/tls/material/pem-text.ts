/** One PEM block (RFC 7468), with real newlines and lines of 64 characters. */
export interface PemBlock {
  label: string;
  pem: string;
}

interface PemText {
  blocks: PemBlock[];
  /** A block has no beginning or no end. */
  truncated?: boolean;
  /** There are more than {@link MAX_BLOCKS}; `blocks` is empty then. */
  tooMany?: boolean;
  /** The bytes, decoded from base64, if they are not PEM. They may be DER. */
  binary?: Buffer;
}

// Also finds labels that RFC 7468, 3 does not allow: no block may be skipped in silence.
const BOUNDARY = /-----(BEGIN|END) ([^-\n]+)-----/g;
/**
 * A boundary, or a part of one. Both patterns read the text once: a pattern that searches for the end of the block, or
 * for any number of dashes, takes minutes for a file of 1 MiB.
 */
const REMNANT = /---(BEGIN|END)\b/gi;
/** More than any bundle of public roots has. */
export const MAX_BLOCKS = 1_000;
/** Escaped by one tool, or by two. The limit keeps the time short for a file of backslashes. */
const ESCAPED_NEWLINE = /\\{1,4}r\\{1,4}n|\\{1,4}[rn]/g;
// RFC 1421, 4.6: the headers of a traditionally encrypted key.
const HEADER_LINE = /^[A-Za-z-]+: .*$/;

/**
 * Finds the PEM blocks in bytes: text with real or `\n`-escaped newlines (escaped twice too), CRLF, a byte order mark,
 * UTF-16, text around the blocks, spaces in place of newlines, or the base64 of all that.
 */
export function readPemText(bytes: Buffer): PemText {
  const text = decodeText(bytes);
  if (text.includes('-----BEGIN') || text.includes('-----END')) return splitBlocks(text);
  const decoded = decodeBase64(text);
  if (decoded === undefined) return { blocks: [], binary: bytes };
  const inner = decodeText(decoded);
  return inner.includes('-----BEGIN') ? splitBlocks(inner) : { blocks: [], binary: decoded };
}

function decodeText(bytes: Buffer): string {
  // The byte order mark can stay: it is before the first block, and `\s` matches it.
  const isUtf16 = bytes[0] === 0xff && bytes[1] === 0xfe;
  return bytes.toString(isUtf16 ? 'utf16le' : 'utf8');
}

function decodeBase64(text: string): Buffer | undefined {
  const compact = text
    .replace(ESCAPED_NEWLINE, '')
    .replace(/\s+/g, '')
    .replace(/^(["'])(.*)\1$/, '$2');
  if (compact.length < 64 || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(compact)) return undefined;
  return Buffer.from(compact, 'base64');
}

function splitBlocks(text: string): PemText {
  const unescaped = text.replace(ESCAPED_NEWLINE, '\n').replace(/\r\n?/g, '\n');
  const blocks: PemBlock[] = [];
  let open: { label: string; from: number } | undefined;
  for (const { 0: line, 1: edge, 2: label, index } of unescaped.matchAll(BOUNDARY)) {
    if (edge === 'BEGIN') {
      open = { label, from: index + line.length };
      continue;
    }
    if (open?.label === label) blocks.push({ label, pem: rebuild(label, unescaped.slice(open.from, index)) });
    open = undefined;
    if (blocks.length > MAX_BLOCKS) return { blocks: [], tooMany: true };
  }
  const boundaries = unescaped.match(REMNANT)?.length ?? 0;
  return { blocks, truncated: boundaries !== 2 * blocks.length || blocks.length === 0 };
}

function rebuild(label: string, body: string): string {
  const lines = body.split('\n').map((line) => line.trim());
  const headers = lines.filter((line) => HEADER_LINE.test(line));
  const base64 = lines
    .filter((line) => !HEADER_LINE.test(line))
    .join('')
    .replace(/\s+/g, '');
  const wrapped = base64.match(/.{1,64}/g) ?? [];
  const head = headers.length > 0 ? [...headers, ''] : [];
  return [`-----BEGIN ${label}-----`, ...head, ...wrapped, `-----END ${label}-----`, ''].join('\n');
}
