/** Replaces a text that contains a secret. */
export const NOT_SHOWN = '[not shown: it contains a secret or a part of one]';
// A JWT or JWE: two to five base64url parts, or what is left after truncation. A short text counts only with both dots.
const JWT = /(?<![\w-])eyJ(?:(?=[\w.-]{20})[\w-]*(?:\.[\w-]*){0,4}|[\w-]+\.[\w-]+\.[\w-]*)/;
const PEM = '-----BEGIN';
/** An escape sequence of a URL or form, of HTML, or of JSON. */
const ESCAPE = '(?:%(?:25)*[\\da-f]{2}|&#?\\w{1,8};|\\\\u[\\da-f]{4})';
const ESCAPES = new RegExp(ESCAPE, 'gi');
/** A text in which every character is escaped may hide a secret. */
const MANY_ESCAPES = new RegExp(`${ESCAPE}{8}`, 'i');

/** A text that shares this many letters or digits in a row with a secret contains a part of the secret. */
const RUN_LENGTH = 8;
const RUNS = /[a-z\d]{8,}/g;
/** A secret with fewer letters and digits than this would match many harmless texts. */
const MIN_LETTERS = 4;

/** Characters of a text that are cleaned, beyond those shown. A response may contain megabytes of white space. */
const MAX_READ = 20_000;
/** Characters that are searched beyond those shown: the text may be cut in the middle of a secret. */
const MARGIN = 200;
/** A longer text may not stay in memory because of a part of it. */
const LONG = 1_000;

/**
 * Makes a text from outside safe for an error or a log: one line of at most `maxLength` characters. The whole text is
 * replaced by a note if, ignoring case and white space, it contains one of:
 * - 8 letters or digits in a row that one of the secrets contains too,
 * - a whole secret,
 * - eight escape sequences in a row,
 * - a JWT or a PEM block.
 */
export function cleanText(text: string, secrets: readonly string[], maxLength: number): string {
  const cleaned = text
    .slice(0, maxLength + MAX_READ)
    .replace(/\p{Cf}+/gu, '')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim();
  const read = cleaned.slice(0, maxLength + MARGIN);
  if (MANY_ESCAPES.test(read) || sharesRun(read, secrets) || containsSecret(read, secrets)) return NOT_SHOWN;
  const shown = cleaned.length > maxLength ? `${cleaned.slice(0, maxLength)}…` : cleaned;
  // V8 keeps the whole text behind a part of it. A round trip copies the part.
  return text.length > LONG ? (JSON.parse(JSON.stringify(shown)) as string) : shown;
}

/** Whether a text contains a whole secret, plain or escaped, or any JWT or PEM block. */
export function containsSecret(text: string, secrets: readonly string[]): boolean {
  if (JWT.test(text) || text.includes(PEM)) return true;
  const given = folded(text);
  // Most texts have no escapes, and are then searched once.
  const readings = [...new Set([given, given.replace(ESCAPES, unescaped)])].map(lettersOf);
  return secrets.some((secret) => {
    const letters = lettersOf(folded(secret));
    if (letters.length < MIN_LETTERS) return secret !== '' && given.includes(folded(secret));
    return readings.some((reading) => reading.includes(letters));
  });
}

/** The character of a numeric escape. A named one, such as `&amp;`, is never a letter or digit, and becomes empty. */
function unescaped(escape: string): string {
  const [, hex, decimal] = /^(?:%(?:25)*|&#x|\\u)([\da-f]+)|^&#(\d+)/i.exec(escape) ?? [];
  const code = hex === undefined ? Number(decimal) : parseInt(hex, 16);
  return code < 128 ? String.fromCharCode(code).toLowerCase() : '';
}

function sharesRun(text: string, secrets: readonly string[]): boolean {
  const all = secrets.map(folded).join('\n');
  return (folded(text).match(RUNS) ?? []).some((run) => {
    for (let start = 0; start + RUN_LENGTH <= run.length; start += 1)
      if (all.includes(run.slice(start, start + RUN_LENGTH))) return true;
    return false;
  });
}

function folded(text: string): string {
  return text.replace(/\s+/g, '').toLowerCase();
}

function lettersOf(text: string): string {
  return text.replace(/[^a-z\d]+/g, '');
}
