import { PATH_WORDS } from '../../config/resources.js';
import { cleanText, ServiceRequestError } from '../../errors/index.js';

const NAME = /\{([^{}]+)\}/g;
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;
const FIRST = /^[\w.-]{1,64}$/;
const VERSION = /^v\d{1,2}$/;
/** A control character, or half of one that has two. */
const UNSENDABLE = /[\p{Cc}\p{Cs}]/u;

/** The values of the names in a path: `{ account_id }` for `/accounts/{account_id}`. */
export type PathParams = Readonly<Record<string, string | number | bigint>>;

/**
 * Fills in the names before the query, each value encoded as one segment. Throws ServiceRequestError: for a name that the
 * path lacks, or without any values, the fault is the code's; for a value, the caller's.
 */
export function fillPath(path: unknown, given: PathParams | null | undefined): string {
  const params = given ?? {};
  if (typeof path !== 'string') throw ServiceRequestError.of('path', 'must be a string');
  const template = templateOf(path);
  const [named] = template.match(NAME) ?? [];
  if (!given && named)
    throw ServiceRequestError.ofMisuse('pathParams', `is missing, with a value for ${shown(named)}`);
  const unknown = Object.keys(params).find((name) => !template.includes(`{${name}}`));
  if (unknown !== undefined) {
    throw ServiceRequestError.ofMisuse(
      `pathParams.${shown(unknown)}`,
      'is not in the path, as {name} before the query',
    );
  }
  return (
    template.replace(NAME, (_, name: string) => encode(name, params[name])) + path.slice(template.length)
  );
}

/**
 * How messages, logs and events name a path. With `pathParams` it is the template. Of any other path, the first segment,
 * versions and the words of the known API are shown, and each other segment as `{}`: it may be the id of a customer, and
 * metrics need a bounded set of names.
 * @param basePath the path of the service's address, without a slash at its end: the same in all environments
 */
export function routeOf(path: string, pathname: string, basePath: string, isTemplate: boolean): string {
  if (isTemplate) {
    const whole = templateOf(path);
    const below = whole.replace(ORIGIN, '');
    const template =
      below !== whole && below.startsWith(`${basePath}/`) ? below.slice(basePath.length) : below;
    return template.startsWith('/') ? template : `/${template}`;
  }
  const isBelow = pathname === basePath || pathname.startsWith(`${basePath}/`);
  const segments = (isBelow ? pathname.slice(basePath.length) : pathname).split('/').filter(Boolean);
  return `/${segments.map((segment, index) => (isShown(segment, index) ? segment : '{}')).join('/')}`;
}

function isShown(segment: string, index: number): boolean {
  return index === 0 ? FIRST.test(segment) : VERSION.test(segment) || PATH_WORDS.has(segment);
}

function templateOf(path: string): string {
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}

/** A name may be an outsider's, if a host puts a path together, or spreads a body into the values. */
function shown(name: string): string {
  return cleanText(name, [], 64);
}

function encode(name: string, value: unknown): string {
  const refused = (what: string) => ServiceRequestError.of(shown(name), what);
  const isText = typeof value === 'string' || typeof value === 'bigint' || Number.isFinite(value);
  if (!isText) throw refused('must be a text or a number');
  const text = String(value);
  if (text === '') throw refused('must not be empty');
  if (UNSENDABLE.test(text)) throw refused('must not hold a control character or a part of a character');
  return encodeURIComponent(text);
}
