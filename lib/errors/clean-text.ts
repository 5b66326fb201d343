const HIDDEN = '[secret]';
// Three base64url parts: a JWT, whosever it is.
const JWT = /(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*/g;
const PEM_BLOCK = /-----BEGIN [^-]{1,40}-----[^]*?(-----END [^-]{1,40}-----|$)/g;
/** Beyond the characters that are shown: what a secret at the cut, or many invisible characters, may take. */
const MARGIN = 20_000;

/**
 * Foreign text made fit for an error or a log: one line, at most `maxLength` characters, and without the secrets that
 * it may echo (as they are, form-encoded, percent-encoded, as JSON text), without tokens and keys of anybody.
 */
export function cleanText(text: string, secrets: readonly string[], maxLength: number): string {
  // Foreign text may be as long as an answer: what is cut off anyway is not looked at.
  const bounded = text.slice(0, maxLength + MARGIN);
  // Twice, because a secret may be put together again by taking the control characters out.
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
