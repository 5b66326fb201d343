import { PATH_WORDS } from '../../config/resources.js';
import { cleanText, ServiceRequestError } from '../../errors/index.js';

const NAME = /\{([^{}]+)\}/g;
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;
const FIRST = /^[\w.-]{1,64}$/;
const VERSION = /^v\d{1,2}$/;
/** A control character, or half of a surrogate pair. */
const UNSENDABLE = /[\p{Cc}\p{Cs}]/u;

/** The values of the names in a path: `{ account_id }` for `/accounts/{account_id}`. */
export type PathParams = Readonly<Record<string, string | number | bigint>>;

/**
 * Fills in the names of a path, up to its query. Each value is encoded as one segment. Throws ServiceRequestError. A value that
 * cannot be sent counts as a fault of the host application's caller; a missing `pathParams`, or a name that the path does
 * not have, as a fault of the host application's code.
 */
export function fillPath(path: unknown, given: PathParams | null | undefined): string {
  const params = given ?? {};
  if (typeof path !== 'string') throw ServiceRequestError.of('path', 'must be a string');
  const template = templateOf(path);
  const [named] = template.match(NAME) ?? [];
  if (!given && named)
    throw ServiceRequestError.ofMisuse('pathParams', `must have a value for ${shown(named)}`);
  const unknown = Object.keys(params).find((name) => !template.includes(`{${name}}`));
  if (unknown !== undefined) {
    throw ServiceRequestError.ofMisuse(
      `pathParams.${shown(unknown)}`,
      'does not occur in the path: write it as {name}, before the query',
    );
  }
  return (
    template.replace(NAME, (_, name: string) => encode(name, params[name])) + path.slice(template.length)
  );
}

/**
 * The path as messages, logs and events show it. With `pathParams`, that is the template, such as `/accounts/{account_id}`.
 * Without a template, the first segment, versions and the known words of the API are shown. Every other segment becomes `{}`,
 * because it may be a personal id, and because metrics need a limited set of names.
 * @param basePath the path of the base address, without a slash at its end. It is left out, so that the route is the same in
 * all environments
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

/** A name may come from outside, if the host application builds the path from input or spreads a body into `pathParams`. */
function shown(name: string): string {
  return cleanText(name, [], 64);
}

function encode(name: string, value: unknown): string {
  const refused = (what: string) => ServiceRequestError.of(shown(name), what);
  const isText = typeof value === 'string' || typeof value === 'bigint' || Number.isFinite(value);
  if (!isText) throw refused('must be a text or a number');
  const text = String(value);
  if (text === '') throw refused('must not be empty');
  if (UNSENDABLE.test(text)) throw refused('must not hold a control character or half of a surrogate pair');
  return encodeURIComponent(text);
}
