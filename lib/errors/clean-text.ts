/** Stands in place of a text that holds a secret. */
const NOT_SHOWN = '[not shown: it contains a secret or a part of one]';
// Base64url parts: a JWT, a JWE (five parts), or what is left of one that was cut off. A short one needs both dots.
const JWT = /(?<![\w-])eyJ(?:(?=[\w.-]{20})[\w-]*(?:\.[\w-]*){0,4}|[\w-]+\.[\w-]+\.[\w-]*)/;
const PEM = /-----BEGIN /;

/** Read of a text before white space and invisible characters are removed: an answer may have megabytes of them. */
const MAX_READ = 20_000;
/** Searched beyond what is shown: what is cut off may be the rest of a secret. */
const MARGIN = 200;
/** So many characters of a secret are a part of it. A shorter secret counts as a whole. */
const PART = 8;
const PIECE = 4;
/** Encodings inside one another that are undone. */
const MAX_DEPTH = 3;
/** What an encoding has in it, or adds: most texts have none of these. */
const ODD = /[&%\\\s+]/;

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/**
 * Makes foreign text safe for an error or a log: one line of at most `maxLength` characters. A text that holds one of
 * the secrets or a part of 8 characters, plain or with percent signs, entities or JSON escapes, is not shown at all; nor
 * is one with a JWT or a PEM block.
 */
export function cleanText(text: string, secrets: readonly string[], maxLength: number): string {
  const cleaned = inOneLine(text.slice(0, maxLength + MAX_READ));
  if (secretFinder(secrets)(cleaned.slice(0, maxLength + MARGIN))) return NOT_SHOWN;
  return cleaned.length > maxLength ? `${cleaned.slice(0, maxLength)}…` : cleaned;
}

/** For texts that are not to be changed otherwise, however long: only those that hold a secret are not shown. */
export function secretCutter(secrets: readonly string[]): (text: string) => string {
  const holdsSecret = secretFinder(secrets);
  return (text) => (holdsSecret(inOneLine(text)) ? NOT_SHOWN : text);
}

function inOneLine(text: string): string {
  return text
    .replace(/\p{Cf}+/gu, '')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim();
}

function secretFinder(secrets: readonly string[]): (text: string) => boolean {
  // A secret may itself look encoded: it is undone like the text.
  const wanted = secrets.flatMap((secret) =>
    ODD.test(secret) ? undone(secret).map(folded) : secret.toLowerCase(),
  );
  const short = wanted.filter((secret) => secret !== '' && secret.length < PART);
  const all = wanted.join('\n');
  return (text) =>
    (ODD.test(text) ? undone(text) : [text]).some((reading) => {
      if (JWT.test(reading) || PEM.test(reading)) return true;
      const found = folded(reading);
      return short.some((secret) => found.includes(secret)) || sharesPart(found, all);
    });
}

/** Any part of 8 characters has a piece of 4 in it that begins at a multiple of 5: most texts share none of those. */
function sharesPart(text: string, secrets: string): boolean {
  for (let start = 0; start + PIECE <= text.length; start += PART - PIECE + 1) {
    if (!secrets.includes(text.slice(start, start + PIECE))) continue;
    for (let from = Math.max(0, start + PIECE - PART); from <= start && from + PART <= text.length; from += 1)
      if (secrets.includes(text.slice(from, from + PART))) return true;
  }
  return false;
}

/** The text, and what it becomes as entities, percent signs and JSON escapes are undone again and again. */
function undone(text: string, depth = MAX_DEPTH): string[] {
  const form = depth > 0 ? unescaped(text) : text;
  return form === text ? [text] : [text, ...undone(form, depth - 1)];
}

function unescaped(text: string): string {
  return text
    .replace(/&#(?:x([\da-f]{1,8})|(\d{1,8}));?/gi, (_, hex?: string, decimal?: string) =>
      String.fromCharCode(hex === undefined ? Number(decimal) : parseInt(hex, 16)),
    )
    .replace(/&(amp|lt|gt|quot|apos);?/gi, (_, name: string) => ENTITIES[name.toLowerCase()])
    .replace(/(?:%[\da-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString())
    .replace(/(?<!\\)\\+u([\da-f]{4})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
    .replace(/(?<!\\)\\+[nrt]/g, ' ');
}

/** Without what an encoding or a line break adds: a plus is the space of a form, a backslash is of JSON. */
function folded(text: string): string {
  return text.replace(/[\s+\\]/g, '').toLowerCase();
}
