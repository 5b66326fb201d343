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

/** Where the array of this key begins, in the object literal at `open`; undefined also where something is spread into it. */
export function arrayOf(code: string, open: number, key: string): number | undefined {
  const end = closingOf(code, open) ?? open;
  // Without what is inside of its values: the same places again.
  let own = code.slice(0, end);
  for (let at = open + 1; at < end; at++) {
    if (!(own[at] in PAIRS)) continue;
    const closing = closingOf(code, at) ?? end;
    own = own.slice(0, at + 1) + ' '.repeat(Math.max(0, closing - at - 1)) + own.slice(closing);
    at = closing;
  }
  const found = new RegExp(String.raw`[{,]\s*${key}\s*:\s*\[(?=\s*\]\s*(?:,|$))`).exec(own.slice(open));
  return found && !own.slice(open).includes('...') ? open + found.index + found[0].length - 1 : undefined;
}
