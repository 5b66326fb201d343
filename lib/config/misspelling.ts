import { variablePrefix } from './module-name.js';
import { variablesOf, VARIABLE_SUFFIXES } from './variables.js';

/** With more changed letters it is another word, not a misspelling. */
const MAX_EDITS = 2;

/** The candidate that the word probably misspells. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let fewest = MAX_EDITS + 1;
  for (const candidate of candidates) {
    const edits = editsBetween(word, candidate, MAX_EDITS);
    if (edits < fewest) [best, fewest] = [candidate, edits];
  }
  return best;
}

/**
 * Variables that are set but not read, and whose name is close to a variable of this module. Each is mapped to that
 * variable.
 */
export function misspeltVariables(variables: readonly string[], name?: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const variable of unknownVariables(variables, name)) {
    const meant = nearest(variable, variablesOf(name));
    if (meant !== undefined) found.set(variable, meant);
  }
  return found;
}

/** First words of several variables: `TLS` of `TLS_CHAIN` and `TLS_RELOAD`. */
const GROUPS = VARIABLE_SUFFIXES.map((suffix) => suffix.split('_', 1)[0]).filter(
  (word, index, words) => words.indexOf(word) !== index,
);

/**
 * Variables that are set and named like ours, but that nothing reads: `SERVICE_TLS_CA_FILE`. Each with what to do.
 * @param inFiles those of an env file: others may be another tool's, as Kubernetes sets SERVICE_HOST
 */
export function unusedVariables(
  variables: readonly string[],
  misspelt: ReadonlyMap<string, string>,
  name?: string,
  inFiles: readonly string[] = [],
): Map<string, string> {
  const prefix = variablePrefix(name);
  const unused = unknownVariables(variables, name).filter(
    (variable) =>
      inFiles.includes(variable) || GROUPS.some((word) => variable.startsWith(`${prefix}${word}_`)),
  );
  const remedies = new Map<string, string>();
  for (const variable of unused)
    remedies.set(variable, 'Remove it or correct its name, unless something else reads it.');
  for (const [variable, meant] of misspelt) remedies.set(variable, `If ${meant} is meant, correct its name.`);
  return remedies;
}

/** Variables with our prefix that neither this module reads nor one with a longer name: SERVICE_KSA_APP_TOKEN. */
function unknownVariables(variables: readonly string[], name?: string): string[] {
  const known = new Set(variablesOf(name));
  const endings = VARIABLE_SUFFIXES.map((suffix) => `_${suffix}`);
  const prefix = variablePrefix(name);
  return variables.filter((variable) => {
    const isLikeOurs = variable.startsWith(prefix) && !known.has(variable);
    return isLikeOurs && !endings.some((ending) => variable.slice(prefix.length).endsWith(ending));
  });
}

/** The Damerau-Levenshtein distance (optimal string alignment); Infinity if it is more than `limit`. */
export function editsBetween(a: string, b: string, limit: number): number {
  if (a === b) return 0;
  if (limit === 0) return Infinity;
  if (a[0] === b[0]) return editsBetween(a.slice(1), b.slice(1), limit);
  const left = (removed: number, added: number): number =>
    editsBetween(a.slice(removed), b.slice(added), limit - 1);
  const isSwapped = a[0] === b[1] && a[1] === b[0];
  return 1 + Math.min(left(1, 0), left(0, 1), left(1, 1), isSwapped ? left(2, 2) : Infinity);
}
