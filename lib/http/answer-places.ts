/** A schema may find millions. */
const MAX_ISSUES = 500;
const MAX_PLACES = 5;
const MAX_DEPTH = 16;
const MAX_INDEX = 10_000_000;
const MAX_KEY = 64;
const FIELD_NAME = /^[a-z_]\w*$/i;
/** Names that need quotes: `content-type`, `@type`. */
const QUOTED_NAME = /^[@$]?[a-z_][\w-]*$/i;
/** An account number, a date of birth, a UUID: more digits than a field's name has. */
const MANY_DIGITS = /(\d\D*){5}/;
const HIDDEN = '[…]';

/**
 * The places of a schema's issues, for a message: `: [3].bank_identifier, data.items and 2 more`; empty for the body as a
 * whole. Only the first issues are looked at. The keys of a record are part of the answer, and may be personal data (e-mail addresses, names, ids); a schema
 * does not tell them from the names of fields. So only a key in the form of a field's name is shown: Latin letters, `_`,
 * `-` and at most 4 digits, 64 characters. Any other is `[…]`.
 */
export function describePlaces(issues: readonly unknown[]): string {
  const places = new Set(firstOf(issues, MAX_ISSUES).map(placeOf));
  // The body as a whole says nothing beside a place in it.
  places.delete('');
  const named = [...places].slice(0, MAX_PLACES).join(', ');
  const more = places.size - MAX_PLACES;
  if (named && issues.length > MAX_ISSUES) return `: ${named} and more`;
  return named && `: ${named}${more > 0 ? ` and ${more} more` : ''}`;
}

function placeOf(issue: unknown): string {
  const { path } = Object(issue) as { path?: unknown };
  if (!Array.isArray(path)) return '';
  const place = firstOf(path, MAX_DEPTH).map(toText).join('').replace(/^\./, '');
  return path.length > MAX_DEPTH ? `${place}…` : place;
}

/** A plain array: the lists of some schemas (arktype) are of subclasses, with methods of their own. */
function firstOf(list: readonly unknown[], max: number): unknown[] {
  return Array.from({ length: Math.min(list.length, max) }, (_, index) => list[index]);
}

function toText(segment: unknown): string {
  const key: unknown = isObject(segment) ? segment.key : segment;
  if (typeof key === 'number') return isIndex(key) ? `[${key}]` : HIDDEN;
  if (typeof key !== 'string' || key.length > MAX_KEY || MANY_DIGITS.test(key)) return HIDDEN;
  if (FIELD_NAME.test(key)) return `.${key}`;
  return QUOTED_NAME.test(key) ? `["${key}"]` : HIDDEN;
}

function isIndex(key: number): boolean {
  return Number.isInteger(key) && key >= 0 && key < MAX_INDEX;
}

function isObject(value: unknown): value is { key?: unknown } {
  return typeof value === 'object' && value !== null;
}
