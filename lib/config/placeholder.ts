// Words without digits. Real tokens, secrets and ids do not look like this.
const WORDS = String.raw`[a-z]+([ ._-]+[a-z]+)*`;
const PLACEHOLDER = new RegExp(
  [
    String.raw`\.{3}|…`,
    `<${WORDS}>`,
    String.raw`\$?\{{1,2} ?${WORDS} ?\}{1,2}`,
    `your[ _-]${WORDS}`,
    '(change|replace|fill)[ _-]?(me|this|in)',
    'placeholder|todo|tbd|fixme',
    // A UUID of zeros, with or without its version and variant.
    '0{8}-0{4}-[0-9a-f]0{3}-[0-9a-f]0{3}-0{12}',
  ].join('|'),
  'i',
);
const WHOLE = new RegExp(`^(${PLACEHOLDER.source})$`, 'i');
/** An address with brackets, or with dots or `your-host` in place of its host. */
const IN_ADDRESS = new RegExp(String.raw`^https?://(.*[<>{}…].*|(\.{3}|your([_-][a-z]+)+)([:/].*)?)$`, 'i');

/** A longer value is no placeholder. */
const MAX_LENGTH = 256;

/** True for a text from an example, in place of the real value: `https://...`, `<your-app-token>`, `changeme`. */
export function isPlaceholder(value: string): boolean {
  const text = value.trim();
  if (text.length > MAX_LENGTH) return false;
  return WHOLE.test(text) || IN_ADDRESS.test(text);
}
