import { type ServiceApiError, ServiceRequestError } from '../../errors/index.js';

const MAX_PLACES = 5;
const MAX_DEPTH = 16;
const FIELD_NAME = /^[a-z_]\w{0,63}$/i;
/** Names that need quotes: `content-type`, `@type`. */
const QUOTED_NAME = /^[@$]?[a-z_][\w-]{0,62}$/i;
/** An account number, a date of birth, a UUID: more digits than a field's name has. */
const MANY_DIGITS = /(\d\D*){5}/;
const HIDDEN = '[…]';

/** A fault that a schema found: its path in the body. The message is not read, as it may show values. */
export interface SchemaIssue {
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The outcome of a schema's check. */
export type SchemaResult<T> =
  { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/**
 * A Standard Schema (standardschema.dev, version 1) that returns a `T`: schemas of zod (3.24 or later), valibot, arktype
 * and others. This type has only the parts that are used.
 */
export interface AnswerSchema<T = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly validate: (body: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>;
  };
}

/** Makes a `T` of an answer's body: a schema, or a function that returns it, or throws if the body does not fit. */
export type AnswerParser<T = unknown> =
  // By the intersection, the type is that of the schema if that is a function too (arktype).
  // eslint-disable-next-line @typescript-eslint/no-empty-object-type
  AnswerSchema<T> | ((body: unknown) => PromiseLike<T> | (T & ({} | null | undefined)));

/** Undefined if the call brings none. Throws ServiceRequestError: what is no parser would fail after a change was done. */
export function checkParser<T>(parse: AnswerParser<T> | null | undefined): AnswerParser<T> | undefined {
  if (parse === undefined || parse === null) return undefined;
  if (typeof parse === 'function' || '~standard' in Object(parse)) return parse;
  const message =
    "must be a function, or a Standard Schema with '~standard'; make a function of another schema: (body) => schema.parse(body)";
  throw ServiceRequestError.ofMisuse('parse', message);
}

/**
 * Returns what the parser makes of a body. A parser's messages and errors may quote the body: only the places are used.
 * @param refused makes the error for a body that does not fit
 */
export async function parseAnswer(
  body: unknown,
  parse: AnswerParser,
  refused: (where: string) => ServiceApiError,
): Promise<unknown> {
  let where: string;
  try {
    // arktype's schemas are functions too, and do not throw.
    if (!('~standard' in parse)) return await parse(body);
    const result = await parse['~standard'].validate(body);
    if (!result.issues) return (result as { value: unknown }).value;
    where = describePlaces(result.issues);
  } catch (error) {
    where = placesOf(error);
  }
  throw refused(where);
}

/** Errors of zod and valibot have the issues of their schemas. A host's own errors may throw when they are read. */
function placesOf(error: unknown): string {
  try {
    const { issues, name } = Object(error) as { issues?: unknown; name?: unknown };
    // Probably the parser's own fault, not the answer's.
    const isFaultOfCode = name === 'TypeError' || name === 'RangeError' || name === 'ReferenceError';
    return isFaultOfCode ? ` (it threw a ${name})` : describePlaces(issues);
  } catch {
    return '';
  }
}

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
