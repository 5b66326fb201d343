// Three base64url parts: a JWT, wherever it comes from.
const JWT = /eyJ[\w-]+\.[\w-]+\.[\w-]*/g;
const PEM_BLOCK = /-----BEGIN [^-]+-----[^]*?(-----END [^-]+-----|$)/g;

/**
 * Foreign text made fit for an error: one line, bounded, and without the secrets it may echo, raw or form-encoded.
 */
export function cleanText(text: string, secrets: readonly string[], maxLength: number): string {
  let cleaned = text.replace(PEM_BLOCK, '[secret]').replace(JWT, '[secret]');
  for (const secret of secrets.filter(Boolean)) {
    for (const form of new Set([
      secret,
      encodeURIComponent(secret),
      new URLSearchParams([['', secret]]).toString().slice(1),
    ])) {
      cleaned = cleaned.replaceAll(form, '[secret]');
    }
  }
  cleaned = cleaned.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return cleaned.length > maxLength ? `${cleaned.slice(0, maxLength)}...` : cleaned;
}
