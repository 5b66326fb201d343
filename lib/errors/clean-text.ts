const HIDDEN = '[secret]';
// Base64url parts: a JWT, a JWE (five parts), or what is left of one that was cut off. A short one needs both dots.
const JWT = /(?<![\w-])eyJ(?:(?=[\w.-]{20})[\w-]*(?:\.[\w-]*){0,4}|[\w-]+\.[\w-]+\.[\w-]*)/g;
const PEM_BLOCK = /-----BEGIN [^-]{1,40}-----[^]*?(-----END [^-]{1,40}-----|$)/g;
/** Characters that are read beyond those that are shown, because secrets and invisible characters are removed first. */
const MARGIN = 20_000;

/** From so many characters on, the beginning of a secret is hidden too. */
const MIN_BEGINNING = 20;

/**
 * Makes foreign text safe for an error or a log: one line of at most `maxLength` characters. The given secrets are
 * hidden in every form in which an answer may repeat them: plain, form-encoded, percent-encoded, as JSON text, in
 * base64, and cut off after 20 characters or more. So are all JWTs and PEM blocks.
 */
export function cleanText(text: string, secrets: readonly string[], maxLength: number): string {
  // The text may be as long as an answer. Most of a long one is cut off anyway, so it is not searched.
  const bounded = text.slice(0, maxLength + MARGIN);
  // The longest first: one secret may begin as another does, such as two tokens with one header.
  const most = Math.max(bounded.length, MIN_BEGINNING);
  const forms = [...new Set(secrets.flatMap((secret) => formsOf(cut(secret, most))))].sort(
    (one, other) => other.length - one.length,
  );
  // Twice, because a secret may appear only after control characters are removed.
  const once = hide(bounded, forms).replace(/\p{Cf}+/gu, '');
  const cleaned = hide(once.replace(/[\p{Cc}\s]+/gu, ' '), forms).trim();
  return cleaned.length > maxLength ? `${cleaned.slice(0, maxLength)}…` : cleaned;
}

function hide(text: string, forms: readonly string[]): string {
  let hidden = text.replace(PEM_BLOCK, HIDDEN).replace(JWT, HIDDEN);
  for (const form of forms) hidden = hidden.replaceAll(form, HIDDEN);
  const long = forms.filter((form) => form.length > MIN_BEGINNING);
  for (const beginning of new Set(long.map((form) => form.slice(0, MIN_BEGINNING)))) {
    const ends = long.filter((form) => form.startsWith(beginning)).map((form) => form.slice(MIN_BEGINNING));
    const [before = '', ...others] = hidden.split(beginning);
    const after = others.map((part) => part.slice(Math.max(...ends.map((end) => sharedLength(part, end)))));
    hidden = [before, ...after].join(HIDDEN);
  }
  return hidden;
}

/** No more of a secret than a text of that length can hold; not within a character of two code units. */
function cut(secret: string, length: number): string {
  return secret.length > length ? secret.slice(0, length).replace(/[\ud800-\udbff]$/, '') : secret;
}

/** How many characters both begin with. */
function sharedLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

function formsOf(secret: string): string[] {
  if (secret === '') return [];
  const formEncoded = new URLSearchParams({ s: secret }).toString().slice(2);
  const forms = [secret, formEncoded, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)];
  const lowerCase = forms.map((form) => form.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()));
  return [...forms, ...lowerCase, ...base64Of(secret)];
}

/** In both alphabets, also where the secret is the end of what was encoded, as in `id:secret`. */
function base64Of(secret: string): string[] {
  const bytes = Buffer.from(secret);
  // Without the characters that hold bits of what is before. A short text could be a part of any word.
  const texts = [0, 1, 2]
    .map((before) =>
      Buffer.concat([Buffer.alloc(before), bytes])
        .toString('base64')
        .slice(before && before + 1),
    )
    .filter((text) => text.length >= 12);
  return texts.flatMap((text) => [
    text,
    text.replace(/=+$/, ''),
    text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''),
    encodeURIComponent(text),
  ]);
}
