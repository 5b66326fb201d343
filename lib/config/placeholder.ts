// Words only, and no digits: what a service gives out as a token, secret or id never looks like one of these.
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
/** What no address has: brackets in it, or dots or `your-host` where a host stands. */
const IN_ADDRESS = new RegExp(String.raw`^https?://(.*[<>{}…].*|(\.{3}|your([_-][a-z]+)+)([:/].*)?)$`, 'i');

/** Nobody writes a longer one. */
const LONGEST = 256;

/** True for what stands in an example until the real value is put in: `https://...`, `<your-app-token>`, `changeme`. */
export function isPlaceholder(value: string): boolean {
  const text = value.trim();
  if (text.length > LONGEST) return false;
  return WHOLE.test(text) || IN_ADDRESS.test(text);
}
