import { variablePrefix, variablesOf, VARIABLE_SUFFIXES } from './variables.js';

/** With more changed letters it is another word, not a misspelling. */
const MAX_EDITS = 2;

/** The candidate that the word is most likely a misspelling of. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: { candidate: string; edits: number } | undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) > MAX_EDITS) continue;
    const edits = editsBetween(word, candidate);
    if (edits <= MAX_EDITS && edits < (best?.edits ?? Infinity)) best = { candidate, edits };
  }
  return best?.candidate;
}

/**
 * Variables that are set but not read, and whose name is close to a variable of this module. Each is mapped to that
 * variable. Variables of a module with another name are left out.
 */
export function misspeltVariables(variables: readonly string[], name?: string): Map<string, string> {
  const prefix = variablePrefix(name);
  const known = new Set(variablesOf(name));
  const unknown = variables.filter((variable) => variable.startsWith(prefix) && !known.has(variable));
  // SERVICE_KSA_BASE_URL and SERVICE_KSA_APP_TOKEN: two variables with the same word belong to a module of that name.
  const words = unknown.flatMap((variable) => possibleNames(variable.slice(prefix.length)));
  const names = new Set(words.filter((word, index) => words.indexOf(word) !== index));
  const found = new Map<string, string>();
  for (const variable of unknown) {
    const meant = nearest(variable, known);
    const isOfAnotherModule = possibleNames(variable.slice(prefix.length)).some(
      (word) => names.has(word) || `${prefix}${word}_${meant?.slice(prefix.length)}` === variable,
    );
    if (meant !== undefined && !isOfAnotherModule) found.set(variable, meant);
  }
  return found;
}

/** The text before the name of a variable, which can be a module's name: `KSA` of `KSA_APP_TOKEN`. */
function possibleNames(text: string): string[] {
  return VARIABLE_SUFFIXES.filter((suffix) => text.endsWith(`_${suffix}`)).map((suffix) =>
    text.slice(0, -suffix.length - 1),
  );
}

/** The Damerau-Levenshtein distance (optimal string alignment). */
function editsBetween(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = rows[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(rows[i - 1][j] + 1, row[j - 1] + 1, replaced);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) row[j] = Math.min(row[j], rows[i - 2][j - 2] + 1);
    }
    rows.push(row);
  }
  return rows[a.length][b.length];
}
