import { type ServiceApiError, ServiceRequestError } from '../errors/index.js';

const MAX_PLACES = 5;
const MAX_DEPTH = 16;
const FIELD_NAME = /^[a-z_]\w{0,63}$/i;
/** Names that need quotes: `content-type`, `@type`. */
const QUOTED_NAME = /^[@$]?[a-z_][\w-]{0,62}$/i;
/** An account number, a date of birth, a UUID: more digits than a field's name has. */
const MANY_DIGITS = /(\d\D*){5}/;
const HIDDEN = '[…]';

/** A fault that a schema found, with its path in the body. Its message is not read, because it may show values. */
export interface SchemaIssue {
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The result of a schema's check. */
export type SchemaResult<T> =
  { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] };

/**
 * A Standard Schema (standardschema.dev, version 1) that returns a `T`. Schemas of zod (3.24 or later), valibot, arktype and
 * others are such schemas. This type has only the parts that this module uses.
 */
export interface ResponseSchema<T = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly validate: (body: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>;
  };
}

/** What a function in `parse` returns. */
export type ParseResult<T> =
  // The schemas of arktype are functions too. With this intersection, TypeScript infers the type from the schema.
  // eslint-disable-next-line @typescript-eslint/no-empty-object-type
  PromiseLike<T> | (T & ({} | null | undefined));

/** Turns the body of a response into a `T`: a schema, or a function that returns the `T` and throws if the body does not fit. */
export type ResponseParser<T = unknown> = ResponseSchema<T> | ((body: unknown) => ParseResult<T>);

/**
 * A function for a body that is text or bytes. TypeScript takes the type of an inline function's parameter only from types with one
 * signature. With the second one here, it stays `unknown`. Otherwise there would be two types for it, and TypeScript would use none.
 */
export interface BodyParser<Body, T> {
  (body: Body): ParseResult<T>;
  <_>(body: Body): ParseResult<T>;
}

/**
 * Returns the parser, or undefined if the option is not set. Throws ServiceRequestError for anything else before the call is
 * sent: otherwise the call would fail after the service has executed it.
 */
export function checkParser(parse: unknown): ResponseParser | undefined {
  if (parse === undefined || parse === null) return undefined;
  if (typeof parse === 'function' || '~standard' in Object(parse)) return parse as ResponseParser;
  const message =
    "must be a function, or a Standard Schema with '~standard'; make a function of another schema: (body) => schema.parse(body)";
  throw ServiceRequestError.ofMisuse('parse', message);
}

/** Applies a schema or a function. Rejects with what it throws. */
export async function applyParser(parse: ResponseParser, body: unknown): Promise<SchemaResult<unknown>> {
  // The schemas of arktype are functions too, but return their issues instead of throwing.
  return '~standard' in parse ? parse['~standard'].validate(body) : { value: await parse(body) };
}

/**
 * Runs the parser on a body. The parser's messages and errors may quote the body, so only the places of the faults are used.
 * @param toError makes the error for a body that does not fit
 */
export async function runParser(
  body: unknown,
  parse: ResponseParser,
  toError: (where: string) => ServiceApiError,
): Promise<unknown> {
  let where: string;
  try {
    const result = await applyParser(parse, body);
    if (!result.issues) return result.value;
    where = describePlaces(result.issues);
  } catch (error) {
    where = placesOf(error);
  }
  throw toError(where);
}

/** Reads the issues of an error, which zod and valibot put there. An error of the host application may throw when it is read. */
function placesOf(error: unknown): string {
  try {
    const { issues, name } = Object(error) as { issues?: unknown; name?: unknown };
    // The parser itself has probably failed, and not the body.
    const isFaultOfCode = name === 'TypeError' || name === 'RangeError' || name === 'ReferenceError';
    return isFaultOfCode ? ` (it threw a ${name})` : describePlaces(issues);
  } catch {
    return '';
  }
}

/**
 * Describes the places of a schema's first issues for a message, such as `: [3].bank_identifier, data.items`. Returns an empty
 * text if the issue is about the body as a whole.
 *
 * The keys of a record come from the service and may be personal data (e-mail addresses, names, ids), and a schema does not
 * tell them from names of fields. So a key is shown only if it looks like the name of a field: Latin letters, `_`, `-`, at
 * most 4 digits, at most 64 characters. Any other key is shown as `[…]`.
 */
export function describePlaces(issues: unknown): string {
  const places = new Set(firstOf(issues, MAX_PLACES).map(placeOf));
  // An issue about the body as a whole adds nothing to the place of another issue.
  places.delete('');
  return places.size > 0 ? `: ${[...places].join(', ')}` : '';
}

function placeOf(issue: unknown): string {
  const { path } = Object(issue) as { path?: unknown };
  return firstOf(path, MAX_DEPTH).map(toText).join('').replace(/^\./, '');
}

/** Copies a list into a plain array: the lists of arktype are instances of a subclass with methods of its own. */
function firstOf(list: unknown, max: number): unknown[] {
  if (!Array.isArray(list)) return [];
  return Array.from({ length: Math.min(list.length, max) }, (_, index) => list[index] as unknown);
}

function toText(segment: unknown): string {
  const key: unknown =
    typeof segment === 'object' && segment !== null ? (segment as { key?: unknown }).key : segment;
  if (typeof key === 'number') return Number.isInteger(key) && key >= 0 && key < 1e7 ? `[${key}]` : HIDDEN;
  if (typeof key !== 'string' || MANY_DIGITS.test(key.slice(0, 99))) return HIDDEN;
  // yup writes the index of a list as a string.
  if (/^\d+$/.test(key)) return `[${key}]`;
  if (FIELD_NAME.test(key)) return `.${key}`;
  return QUOTED_NAME.test(key) ? `["${key}"]` : HIDDEN;
}
