/** Stands in place of a text that holds a secret. */
const NOT_SHOWN = '[not shown: it contains a secret or a part of one]';
// Base64url parts: a JWT, a JWE (five parts), or what is left of one that was cut off. A short one needs both dots.
const JWT = /(?<![\w-])eyJ(?:(?=[\w.-]{20})[\w-]*(?:\.[\w-]*){0,4}|[\w-]+\.[\w-]+\.[\w-]*)/;
const PEM = '-----BEGIN';
/** Of an address or a form, of HTML, of JSON. */
const ESCAPE = '(?:%(?:25)*[\\da-f]{2}|&#?\\w{1,8};|\\\\u[\\da-f]{4})';
const ESCAPES = new RegExp(ESCAPE, 'gi');
/** A text of which each character is escaped may hold anything. */
const MANY_ESCAPES = new RegExp(`${ESCAPE}{8}`, 'i');

/** So many letters or digits of a secret in a row are a part of it. */
const ROW = 8;
const ROWS = /[a-z\d]{8,}/g;
/** Fewer letters and digits than this are in many texts. */
const MIN_LETTERS = 4;

/** Read of a text before white space and invisible characters are removed: an answer may have megabytes of them. */
const MAX_READ = 20_000;
/** Searched beyond what is shown: what is cut off may be the rest of a secret. */
const MARGIN = 200;

/**
 * Makes foreign text safe for an error or a log: one line of at most `maxLength` characters. A text is not shown at all
 * if it shares 8 letters or digits in a row with one of the secrets, or holds a whole one, whatever its case and white
 * space; or has eight escapes in a row, a JWT or a PEM block.
 */
export function cleanText(text: string, secrets: readonly string[], maxLength: number): string {
  const cleaned = text
    .slice(0, maxLength + MAX_READ)
    .replace(/\p{Cf}+/gu, '')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim();
  const read = cleaned.slice(0, maxLength + MARGIN);
  if (MANY_ESCAPES.test(read) || sharesRow(read, secrets) || holdsSecret(read, secrets)) return NOT_SHOWN;
  return cleaned.length > maxLength ? `${cleaned.slice(0, maxLength)}…` : cleaned;
}

/** Whether a text holds a whole secret, plain or escaped; or a JWT or PEM block of anybody. */
export function holdsSecret(text: string, secrets: readonly string[]): boolean {
  if (JWT.test(text) || text.includes(PEM)) return true;
  const given = folded(text);
  const readings = [given, given.replace(ESCAPES, unescaped)].map(lettersOf);
  return secrets.some((secret) => {
    const letters = lettersOf(folded(secret));
    if (letters.length < MIN_LETTERS) return secret !== '' && given.includes(folded(secret));
    return readings.some((reading) => reading.includes(letters));
  });
}

/** The character of a number; nothing for a name, which stands for a sign. */
function unescaped(escape: string): string {
  const [, hex, decimal] = /^(?:%(?:25)*|&#x|\\u)([\da-f]+)|^&#(\d+)/i.exec(escape) ?? [];
  const code = hex === undefined ? Number(decimal) : parseInt(hex, 16);
  return code < 128 ? String.fromCharCode(code).toLowerCase() : '';
}

function sharesRow(text: string, secrets: readonly string[]): boolean {
  const all = secrets.map(folded).join('\n');
  return (folded(text).match(ROWS) ?? []).some((row) => {
    for (let start = 0; start + ROW <= row.length; start += 1)
      if (all.includes(row.slice(start, start + ROW))) return true;
    return false;
  });
}

function folded(text: string): string {
  return text.replace(/\s+/g, '').toLowerCase();
}

function lettersOf(text: string): string {
  return text.replace(/[^a-z\d]+/g, '');
}
