import { METHODS } from 'node:http';

interface Route<Value> {
  method: string;
  path: string;
  value: Value;
  segments: Segment[];
}

/** A literal, or the names in it and what has to stand there. */
type Segment = string | { names: string[]; pattern: RegExp };

/** The query of a request by its names; a list for a name that is repeated. */
export type RequestQuery = Readonly<Record<string, string | string[]>>;

/** What was found at a path. */
export interface FoundRoute<Value> {
  /** For example `GET /accounts/{id}`. */
  route: string;
  value: Value;
  /** By the names in the path, decoded. */
  pathParams: Record<string, string>;
}

/** Values by method and path. A literal segment comes before a name; of two that are alike, the last one counts. */
export class RouteTable<Value> {
  readonly #routes: Route<Value>[] = [];

  /**
   * @param path `{id}` stands for any text in a segment
   * @throws TypeError for a method or path that no call can have
   */
  add(method: string, path: string, value: Value): void {
    const upper = method.toUpperCase();
    if (!METHODS.includes(upper)) throw new TypeError(`there is no method '${method}'.`);
    this.#routes.unshift({ method: upper, path, value, segments: segmentsOf(path) });
    this.#routes.sort((one, other) => rankOf(one).localeCompare(rankOf(other)));
  }

  /** @param path as on the wire, without query */
  find(method: string, path: string): FoundRoute<Value> | undefined {
    for (const route of this.#routes) {
      const pathParams = route.method === method ? match(route.segments, path) : undefined;
      if (pathParams) return { route: `${method} ${route.path}`, value: route.value, pathParams };
    }
    return undefined;
  }

  /** All routes, for example `GET /accounts/{id}`. */
  get known(): string[] {
    return this.#routes.map(({ method, path }) => `${method} ${path}`);
  }

  /** The methods that have a value at this path. */
  methodsAt(path: string): string[] {
    const there = this.#routes.filter(({ segments }) => match(segments, path));
    return [...new Set(there.map(({ method }) => method))].sort();
  }
}

/** Whether a path, as on the wire and without query, is of the template; a slash at the end of either is ignored. */
export function matchesTemplate(template: string, path: string): boolean {
  return match(segmentsOf(template), path) !== undefined;
}

function segmentsOf(template: string): Segment[] {
  const segments = withoutLastSlash(template).split('/');
  const isPath =
    segments.shift() === '' && segments.every((each) => /^(?!:)([^?#*{}]|\{[A-Za-z_][\w-]*\})*$/.test(each));
  if (!isPath) {
    throw new TypeError(
      `a path is as '/accounts/v1/{id}', where {id} stands for any text, without query, and not '${template}'.`,
    );
  }
  return segments.map((segment) => {
    const names = [...segment.matchAll(/\{([\w-]+)\}/g)].map(([, name]) => name);
    const source = segment.replace(/[.+^$()|[\]\\]/g, '\\$&').replace(/\{[\w-]+\}/g, '(.+)');
    return names.length > 0 ? { names, pattern: new RegExp(`^${source}$`, 's') } : segment;
  });
}

function match(segments: Segment[], path: string): Record<string, string> | undefined {
  const actual = withoutLastSlash(path).split('/').slice(1);
  if (actual.length !== segments.length) return undefined;
  const found: [string, string][] = [];
  for (const [index, segment] of segments.entries()) {
    const text = decode(actual[index]);
    if (text === undefined || (typeof segment === 'string' && text !== segment)) return undefined;
    if (typeof segment === 'string') continue;
    const values = segment.pattern.exec(text)?.slice(1);
    if (!values) return undefined;
    found.push(...values.map((value, place): [string, string] => [segment.names[place], value]));
  }
  return Object.fromEntries(found);
}

/** The query of a request; a list for a name that is repeated. */
export function readQuery(query: string): RequestQuery {
  const parsed = new URLSearchParams(query);
  const entries = [...new Set(parsed.keys())].map((name) => {
    const values = parsed.getAll(name);
    return [name, values.length === 1 ? values[0] : values];
  });
  return Object.fromEntries(entries) as RequestQuery;
}

/** Names sort after literals, from the left. */
function rankOf({ segments }: Route<unknown>): string {
  return segments.map((segment) => (typeof segment === 'string' ? '0' : '1')).join('');
}

function withoutLastSlash(path: string): string {
  return path.replace(/(?<=.)\/$/, '');
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
