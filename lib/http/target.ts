import { ServiceRequestError } from '../errors/index.js';

export interface TargetRules {
  /** No slash at its end. */
  baseUrl: string;
  origins: ReadonlySet<string>;
}

// What URL parsers silently repair (white space, control characters, backslashes) leads elsewhere than it reads.
const UNSAFE_CHARACTERS = /[\s\\\p{Cc}]/u;
const DOT_SEGMENT = /^(\.|%2e){1,2}$/i;

/**
 * Where a call goes: a path below the base address, or an absolute URL within the service's own origins.
 * Throws ServiceRequestError for everything else, before any header is attached.
 */
export function resolveTarget(path: unknown, { baseUrl, origins }: TargetRules): URL {
  if (typeof path !== 'string') throw refuse('must be a string');
  if (UNSAFE_CHARACTERS.test(path))
    throw refuse('must not hold white space, a backslash or a control character');
  if (path.startsWith('//')) throw refuse('must not begin with //, that names another host');
  const absolute = /^[a-z][a-z0-9+.-]*:/i.test(path);
  if (hasDotSegment(path)) throw refuse('must not hold . or .. segments');
  const address = absolute ? path : `${baseUrl}${path === '' || /^[/?]/.test(path) ? '' : '/'}${path}`;
  const url = parse(address);
  if (url.username || url.password) throw refuse('must not hold a user name or password');
  if (!origins.has(url.origin)) throw refuse("leads outside the service's own addresses");
  if (url.hash) url.hash = '';
  return url;
}

function parse(address: string): URL {
  try {
    return new URL(address);
  } catch {
    throw refuse('is not a URL');
  }
}

function hasDotSegment(path: string): boolean {
  const [beforeQuery = ''] = path.split(/[?#]/, 1);
  return beforeQuery.split('/').some((segment) => DOT_SEGMENT.test(segment));
}

function refuse(message: string): ServiceRequestError {
  return new ServiceRequestError([{ property: 'path', message }]);
}
