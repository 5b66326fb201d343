const HIDDEN = '[secret]';
// Three base64url parts: a JWT.
const JWT = /(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*/g;
const PEM_BLOCK = /-----BEGIN [^-]{1,40}-----[^]*?(-----END [^-]{1,40}-----|$)/g;
/** Characters that are read beyond those that are shown, because secrets and invisible characters are removed first. */
const MARGIN = 20_000;

/**
 * Makes foreign text safe for an error or a log: one line of at most `maxLength` characters. The given secrets are
 * hidden in every form in which an answer may repeat them: plain, form-encoded, percent-encoded, as JSON text. So are
 * all JWTs and PEM blocks.
 */
export function cleanText(text: string, secrets: readonly string[], maxLength: number): string {
  // The text may be as long as an answer. Most of a long one is cut off anyway, so it is not searched.
  const bounded = text.slice(0, maxLength + MARGIN);
  // Twice, because a secret may appear only after control characters are removed.
  const once = hide(bounded, secrets).replace(/\p{Cf}+/gu, '');
  const cleaned = hide(once.replace(/[\p{Cc}\s]+/gu, ' '), secrets).trim();
  return cleaned.length > maxLength ? `${cleaned.slice(0, maxLength)}…` : cleaned;
}

function hide(text: string, secrets: readonly string[]): string {
  let hidden = text.replace(PEM_BLOCK, HIDDEN).replace(JWT, HIDDEN);
  for (const form of new Set(secrets.flatMap(formsOf))) hidden = hidden.replaceAll(form, HIDDEN);
  return hidden;
}

function formsOf(secret: string): string[] {
  if (secret === '') return [];
  const formEncoded = new URLSearchParams({ s: secret }).toString().slice(2);
  const forms = [secret, formEncoded, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)];
  return [...forms, ...forms.map((form) => form.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()))];
}
