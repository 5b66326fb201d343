import { ServiceApiError, ServiceRequestError } from '../errors/index.js';
import { followSignal } from '../exchange/call-limits.js';
import { untilAborted } from '../time/timers.js';
import { type AnswerFacts } from './answer.js';
import { describePlaces } from './answer-places.js';
import { carriedOut } from './retry-policy.js';

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
export type AnswerParser<T = unknown> = AnswerSchema<T> | ((body: unknown) => T | PromiseLike<T>);

/** The result of a parser. */
export type ParsedAnswer<Parser extends AnswerParser> =
  Parser extends AnswerSchema<infer T>
    ? T
    : Parser extends (body: unknown) => infer Returned
      ? Awaited<Returned>
      : never;

/** The option `parse` of a call. */
export interface ParseOption<Parser extends AnswerParser = AnswerParser> {
  /**
   * Checks the body of the answer; the call resolves with what it returns. It also gets the `undefined` of an answer
   * without a body. If the body does not fit, the call rejects with a ServiceApiError `invalid_response` that names
   * the places in the body, and none of its values: what a parser throws or says is left out. It runs once, when the
   * call is over: no retry follows. Neither the call's time limit nor the shutdown ends an asynchronous one; the caller's
   * `signal` ends the wait for it.
   */
  parse: Parser;
}

/** Throws ServiceRequestError if it is not a parser. To be called before anything is sent. */
export function checkParser(parse: unknown): void {
  if (typeof parse === 'function' || typeof standardOf(parse)?.validate === 'function') return;
  throw ServiceRequestError.ofCode(
    'parse',
    'must be a function or a Standard Schema (zod from 3.24 on, valibot, arktype)',
  );
}

interface Parsed {
  value?: unknown;
  refusal?: string;
}

/**
 * Returns what the parser makes of a body. Throws ServiceApiError `invalid_response` if the body does not fit.
 * @param facts the call's facts for that error; called in that case only
 * @param signal ends the wait for an asynchronous parser, whose outcome is then ignored: rejects with its reason
 */
export async function parseAnswer(
  body: unknown,
  parse: AnswerParser,
  facts: () => AnswerFacts,
  signal?: AbortSignal | null,
): Promise<unknown> {
  const outcome = parsedBy(body, parse);
  const isPending = signal && outcome instanceof Promise;
  const { value, refusal } = await (isPending ? whileWanted(outcome, signal) : outcome);
  if (refusal === undefined) return value;
  const about = facts();
  const answered = `The service answered ${about.status} ${body === undefined ? 'without' : 'with'} a body`;
  throw new ServiceApiError({
    ...about,
    code: 'invalid_response',
    message: `${answered} that parse refused${refusal}.${carriedOut(about)}`,
  });
}

function whileWanted(outcome: Promise<Parsed>, given: AbortSignal): Promise<Parsed> {
  const { signal = given, release } = followSignal(given);
  return untilAborted(outcome, signal).finally(release);
}

/**
 * A parser's messages and errors may quote the body: only the places are used. Returns a promise if the parser is
 * asynchronous; it never rejects.
 */
function parsedBy(body: unknown, parse: AnswerParser): Parsed | Promise<Parsed> {
  try {
    // Checked first: arktype's schemas are functions too, and do not throw.
    const standard = standardOf(parse);
    const result = standard ? standard.validate(body) : (parse as (body: unknown) => unknown)(body);
    const read = standard ? readResult : (value: unknown): Parsed => ({ value });
    return isThenable(result) ? Promise.resolve(result).then(read).catch(refusalBy) : read(result);
  } catch (error) {
    return refusalBy(error);
  }
}

function readResult(given: unknown): Parsed {
  const { issues, value } = given as { issues?: unknown; value?: unknown };
  if (!issues) return { value };
  return { refusal: Array.isArray(issues) ? describePlaces(issues) : '' };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';
}

/** Errors of zod and valibot have the issues of their schemas. A host's own errors may throw when they are read. */
function refusalBy(error: unknown): Parsed {
  try {
    const { issues, name } = Object(error) as { issues?: unknown; name?: unknown };
    if (Array.isArray(issues)) return { refusal: describePlaces(issues) };
    return { refusal: isFaultOfCode(name) ? ` (it threw a ${name})` : '' };
  } catch {
    return { refusal: '' };
  }
}

/** Probably the parser's own fault, not the answer's. */
function isFaultOfCode(name: unknown): name is string {
  return name === 'TypeError' || name === 'RangeError' || name === 'ReferenceError';
}

function standardOf(parse: unknown): AnswerSchema['~standard'] | undefined {
  const standard = (Object(parse) as Partial<AnswerSchema>)['~standard'];
  return typeof standard === 'object' && standard !== null ? standard : undefined;
}
