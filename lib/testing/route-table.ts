import { METHODS } from 'node:http';

interface Route<Value> {
  method: string;
  path: string;
  value: Value;
  segments: Segment[];
}

/** A literal text, or a pattern with the names of its parameters. */
type Segment = string | { names: string[]; pattern: RegExp };

/** The query parameters of a request. One that occurs several times is a list. */
export type RequestQuery = Readonly<Record<string, string | string[]>>;

/** The route that matches a path. */
interface FoundRoute<Value> {
  /** For example `GET /accounts/{id}`. */
  route: string;
  value: Value;
  /** The path parameters, decoded. */
  pathParams: Record<string, string>;
}

/**
 * Finds values by method and path. A route with a literal segment takes precedence over one with a parameter. If the same
 * route was added twice, the later one is used.
 */
export class RouteTable<Value> {
  readonly #routes: Route<Value>[] = [];

  /**
   * @param path `{id}` in it matches any text within a segment
   * @throws TypeError for an invalid method or path
   */
  add(method: string, path: string, value: Value): void {
    const upper = method.toUpperCase();
    if (!METHODS.includes(upper)) throw new TypeError(`'${method}' is not an HTTP method.`);
    this.#routes.unshift({ method: upper, path, value, segments: parseTemplate(path) });
    this.#routes.sort((one, other) => rankOf(one).localeCompare(rankOf(other)));
  }

  /** @param path the path as it was sent, without query */
  find(method: string, path: string): FoundRoute<Value> | undefined {
    for (const route of this.#routes) {
      const pathParams = route.method === method ? matchSegments(route.segments, path) : undefined;
      if (pathParams) return { route: `${method} ${route.path}`, value: route.value, pathParams };
    }
    return undefined;
  }

  /** The names of all routes, for example `GET /accounts/{id}`. */
  get known(): string[] {
    return this.#routes.map(({ method, path }) => `${method} ${path}`);
  }

  /** The methods that have a value at this path. */
  methodsAt(path: string): string[] {
    const matching = this.#routes.filter(({ segments }) => matchSegments(segments, path));
    return [...new Set(matching.map(({ method }) => method))].sort();
  }
}

/** Whether a path (as it was sent, without query) matches the template. Trailing slashes are ignored. */
export function matchesTemplate(template: string, path: string): boolean {
  return matchSegments(parseTemplate(template), path) !== undefined;
}

function parseTemplate(template: string): Segment[] {
  const segments = withoutLastSlash(template).split('/');
  const isPath =
    segments.shift() === '' && segments.every((each) => /^(?!:)([^?#*{}]|\{[A-Za-z_][\w-]*\})*$/.test(each));
  if (!isPath) {
    throw new TypeError(
      `a path must look like '/accounts/v1/{id}', where {id} matches any text, and have no query. It is '${template}'.`,
    );
  }
  return segments.map((segment) => {
    const names = [...segment.matchAll(/\{([\w-]+)\}/g)].map(([, name]) => name);
    const source = segment.replace(/[.+^$()|[\]\\]/g, '\\$&').replace(/\{[\w-]+\}/g, '(.+)');
    return names.length > 0 ? { names, pattern: new RegExp(`^${source}$`, 's') } : segment;
  });
}

function matchSegments(segments: Segment[], path: string): Record<string, string> | undefined {
  const actual = withoutLastSlash(path).split('/').slice(1);
  if (actual.length !== segments.length) return undefined;
  const found: [string, string][] = [];
  for (const [index, segment] of segments.entries()) {
    const text = decodeSegment(actual[index]);
    if (text === undefined || (typeof segment === 'string' && text !== segment)) return undefined;
    if (typeof segment === 'string') continue;
    const values = segment.pattern.exec(text)?.slice(1);
    if (!values) return undefined;
    found.push(...values.map((value, place): [string, string] => [segment.names[place], value]));
  }
  return Object.fromEntries(found);
}

export function readQuery(query: string): RequestQuery {
  const parsed = new URLSearchParams(query);
  const entries = [...new Set(parsed.keys())].map((name) => {
    const values = parsed.getAll(name);
    return [name, values.length === 1 ? values[0] : values];
  });
  return Object.fromEntries(entries) as RequestQuery;
}

/** Sorts literal segments before parameters, from left to right. */
function rankOf({ segments }: Route<unknown>): string {
  return segments.map((segment) => (typeof segment === 'string' ? '0' : '1')).join('');
}

function withoutLastSlash(path: string): string {
  return path.replace(/(?<=.)\/$/, '');
}

/** Returns undefined for an invalid percent encoding. */
function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
