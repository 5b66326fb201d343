import { type Explanation, type Remedy } from './service.error.js';

/**
 * Fills the texts of a table in. In braces stand the values, and the paths of options: those of the hint are the options
 * that it is about, in its order unless the row says another.
 */
export function explain(
  message: string,
  { hint, options }: Remedy,
  values: Readonly<Record<string, string | undefined>>,
): Explanation {
  const fill = (text: string): string => text.replace(/\{([\w.]+)\}/g, (_, name: string) => valueOf(name));
  const valueOf = (name: string): string => (name in values ? (values[name] ?? '') : name);
  if (hint === undefined) return { message: fill(message) };
  const named = [...hint.matchAll(/\{(address|[a-z]+\.\w+|appToken|sendAppTokenWithBearer)\}/g)];
  return {
    message: fill(message),
    hint: fill(hint),
    options: options ?? [...new Set(named.map(([, name]) => valueOf(name)))],
  };
}
