const HIDDEN = '[secret]';
const LONGEST = 200;

/**
 * A text of the endpoint's, fit to be shown: without our secret (as it is, form-encoded and percent-encoded), without
 * control characters, at most 200 characters.
 */
export function scrub(text: string, secrets: readonly string[]): string {
  // Twice, because a secret may be put together again by taking the control characters out.
  const clean = hide(
    hide(text, secrets)
      .replace(/\p{Cc}+/gu, ' ')
      .replace(/\p{Cf}+/gu, ''),
    secrets,
  );
  return clean.length > LONGEST ? `${clean.slice(0, LONGEST)}…` : clean;
}

function hide(text: string, secrets: readonly string[]): string {
  let hidden = text;
  for (const form of new Set(secrets.flatMap(formsOf))) hidden = hidden.split(form).join(HIDDEN);
  return hidden;
}

function formsOf(secret: string): string[] {
  if (secret === '') return [];
  const formEncoded = new URLSearchParams({ s: secret }).toString().slice(2);
  const forms = [secret, formEncoded, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)];
  return [...forms, ...forms.map((form) => form.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()))];
}
