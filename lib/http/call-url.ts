import { ServiceRequestError, cleanText } from '../errors/index.js';
import { PATH_WORDS } from '../config/names.js';

/** The parts of a URL that a call needs. */
export type CallUrl = Readonly<
  Pick<URL, 'href' | 'origin' | 'protocol' | 'host' | 'hostname' | 'port' | 'pathname' | 'search'>
>;

// URL parsers silently repair white space, control characters and backslashes, and the URL could then lead elsewhere.
const UNSAFE_CHARACTERS = /[\s\\\p{Cc}]/u;
/** A `.` or `..` segment. IIS also takes the backslash for a separator, and Java servers the semicolon of a path parameter. */
const DOT_SEGMENT = /(^|[/\\;])\.\.?($|[/\\;])/;
/** The percent-encoded characters of dot segments. Nothing else is decoded, so a single `%` is allowed. */
const ENCODED = /%(25|2e|2f|3b|5c)/gi;
/** Each proxy on the way may decode the path once. We look through so many of them. */
const MAX_DECODINGS = 3;
/** Segments of unreserved characters (RFC 3986, section 2.3) that do not begin with a dot. No URL parser changes such a path. */
const PLAIN_PATH = /^(\/[\w~-][\w.~-]*)+\/?$/;

/** Resolves the URL of a call, and refuses every URL that is neither below the base address nor within the service's own origins. */
export class AllowedUrls {
  readonly #origins: ReadonlySet<string>;
  readonly base: CallUrl;
  /** The path of the base address without a slash at its end, such as `/api`. */
  readonly basePath: string;

  /** @param addresses `baseUrl` has no slash at its end; its origin is one of `origins` */
  constructor({ baseUrl, origins }: { baseUrl: string; origins: ReadonlySet<string> }) {
    const { protocol, host, hostname, port, origin, href, pathname } = new URL(baseUrl);
    this.#origins = origins;
    this.base = { href, origin, protocol, host, hostname, port, pathname, search: '' };
    this.basePath = pathname === '/' ? '' : pathname;
  }

  /** @throws ServiceRequestError for a path that leads, or may lead, outside the service's own addresses */
  resolve(path: string): CallUrl {
    return PLAIN_PATH.test(path) ? this.#below(path) : this.#parse(path);
  }

  /** For a plain path this gives the same result as parsing a URL, in a tenth of the time. */
  #below(path: string): CallUrl {
    const pathname = this.basePath + path;
    return { ...this.base, href: this.base.origin + pathname, pathname };
  }

  #parse(path: string): CallUrl {
    if (UNSAFE_CHARACTERS.test(path)) {
      throw ServiceRequestError.of('path', 'must not hold white space, a backslash or a control character');
    }
    if (path.startsWith('//'))
      throw ServiceRequestError.of('path', 'must not begin with //, that names another host');
    if (hasDotSegment(path)) {
      throw ServiceRequestError.of('path', 'must not hold . or .. segments, not even percent-encoded');
    }
    const isAbsolute = /^[a-z][a-z0-9+.-]*:/i.test(path);
    const slash = path === '' || /^[/?]/.test(path) ? '' : '/';
    const address = isAbsolute ? path : this.base.origin + this.basePath + slash + path;
    if (!URL.canParse(address)) throw ServiceRequestError.of('path', 'is not a URL');
    const url = new URL(address);
    if (url.username || url.password)
      throw ServiceRequestError.of('path', 'must not hold a user name or password');
    // The origin of a `blob:` URL is that of the URL inside it, so the protocol is checked too.
    const isHttp = url.protocol === 'https:' || url.protocol === 'http:';
    if (!isHttp || !this.#origins.has(url.origin))
      throw ServiceRequestError.of('path', "leads outside the service's own addresses");
    url.hash = '';
    return url;
  }
}

/** Also finds encoded dot segments: a proxy that decodes paths would follow them (nginx, if `proxy_pass` has a URI). */
function hasDotSegment(path: string): boolean {
  const [beforeQuery = ''] = path.split(/[?#]/, 1);
  let decoded = beforeQuery;
  for (let left = MAX_DECODINGS; left > 0 && decoded.includes('%'); left -= 1) {
    decoded = decoded.replace(ENCODED, (code) => decodeURIComponent(code));
  }
  return DOT_SEGMENT.test(decoded);
}

const NAME = /\{([^{}]+)\}/g;
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;
const FIRST = /^[\w.-]{1,64}$/;
const VERSION = /^v\d{1,2}$/;
/** A control character, or half of a surrogate pair. */
const UNSENDABLE = /[\p{Cc}\p{Cs}]/u;

/** The values of the names in a path: `{ account_id }` for `/accounts/{account_id}`. A number beyond `MAX_SAFE_INTEGER` is refused. */
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
 * @param pathname the path with its values filled in
 * @param basePath the path of the base address, without a slash at its end. It is left out, so that the route is the same in
 * all environments
 * @param path the path as the caller wrote it, if it is a template
 */
export function routeOf(pathname: string, basePath: string, path?: string): string {
  if (path !== undefined) {
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

const PASS_TEXT = 'Pass ids as text: a JavaScript number has at most 15 to 17 digits.';

function encode(name: string, value: unknown): string {
  const refused = (what: string) => ServiceRequestError.of(shown(name), what);
  const isText = typeof value === 'string' || typeof value === 'bigint' || Number.isFinite(value);
  if (!isText) throw refused('must be a text or a number');
  const text = String(value);
  if (text === '') throw refused('must not be empty');
  // 9007199254740993 in code is 9007199254740992 in JavaScript, which may be the id of another account.
  if (
    typeof value === 'number' &&
    (Number.isInteger(value) !== Number.isSafeInteger(value) || text.includes('e'))
  )
    throw ServiceRequestError.ofMisuse(shown(name), 'is a number that may have lost digits', PASS_TEXT);
  if (UNSENDABLE.test(text)) throw refused('must not hold a control character or half of a surrogate pair');
  return encodeURIComponent(text);
}
