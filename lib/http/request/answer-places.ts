const MAX_PLACES = 5;
const MAX_DEPTH = 16;
const FIELD_NAME = /^[a-z_]\w{0,63}$/i;
/** Names that need quotes: `content-type`, `@type`. */
const QUOTED_NAME = /^[@$]?[a-z_][\w-]{0,62}$/i;
/** An account number, a date of birth, a UUID: more digits than a field's name has. */
const MANY_DIGITS = /(\d\D*){5}/;
const HIDDEN = '[…]';

/**
 * The places of a schema's first issues, for a message: `: [3].bank_identifier, data.items`; empty for the body as a
 * whole. The keys of a record are part of the answer, and may be personal data (e-mail addresses, names, ids); a schema
 * does not tell them from the names of fields. So only a key in the form of a field's name is shown: Latin letters, `_`,
 * `-` and at most 4 digits, 64 characters. Any other is `[…]`.
 */
export function describePlaces(issues: unknown): string {
  const places = new Set(firstOf(issues, MAX_PLACES).map(placeOf));
  // The body as a whole says nothing beside a place in it.
  places.delete('');
  return places.size > 0 ? `: ${[...places].join(', ')}` : '';
}

function placeOf(issue: unknown): string {
  const { path } = Object(issue) as { path?: unknown };
  return firstOf(path, MAX_DEPTH).map(toText).join('').replace(/^\./, '');
}

/** A plain array: the lists of some schemas (arktype) are of subclasses, with methods of their own. */
function firstOf(list: unknown, max: number): unknown[] {
  if (!Array.isArray(list)) return [];
  return Array.from({ length: Math.min(list.length, max) }, (_, index) => list[index] as unknown);
}

function toText(segment: unknown): string {
  const key: unknown =
    typeof segment === 'object' && segment !== null ? (segment as { key?: unknown }).key : segment;
  if (typeof key === 'number') return Number.isInteger(key) && key >= 0 && key < 1e7 ? `[${key}]` : HIDDEN;
  if (typeof key !== 'string' || MANY_DIGITS.test(key.slice(0, 99))) return HIDDEN;
  // yup has the places of a list as texts.
  if (/^\d+$/.test(key)) return `[${key}]`;
  if (FIELD_NAME.test(key)) return `.${key}`;
  return QUOTED_NAME.test(key) ? `["${key}"]` : HIDDEN;
}
