/*
 * As much of TypeScript as it takes to find a place in a file that a person wrote: brackets, and what is in none of
 * strings, templates and comments.
 */
const IGNORED = /\/\/[^\n]*|\/\*[^]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;
const PAIRS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** The text with spaces in place of strings and comments, so that each place is where it was. */
export function codeOf(text: string): string {
  return text.replace(IGNORED, (found) => found.replace(/[^\n]/g, ' '));
}

/** Where the bracket at `open` is closed; undefined where it is not, or not by its own. */
export function closingOf(code: string, open: number): number | undefined {
  const expected: string[] = [];
  for (let at = open; at < code.length; at++) {
    const char = code[at];
    if (char in PAIRS) expected.push(PAIRS[char]);
    else if (/[)\]}]/.test(char) && expected.pop() !== char) return undefined;
    if (expected.length === 0) return at;
  }
  return undefined;
}

/** The object literal at `open`, with spaces in place of what is inside of its values: the same places again. Empty where nothing closes it. */
export function keysOf(code: string, open: number): string {
  const end = closingOf(code, open) ?? open;
  let own = code.slice(0, end);
  for (let at = open + 1; at < end; at++) {
    if (!(own[at] in PAIRS)) continue;
    const closing = closingOf(code, at) ?? end;
    own = own.slice(0, at + 1) + ' '.repeat(Math.max(0, closing - at - 1)) + own.slice(closing);
    at = closing;
  }
  return own.slice(open);
}
