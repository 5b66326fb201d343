import { type HttpSettings } from '../config/resolved-options.js';
import { namesIn } from '../config/rules.js';

/** Spells the paths of resources as `http.trailingSlash` says: both spellings appear in the specification (4). */
export class ResourcePaths {
  readonly #slash: boolean;
  readonly #named: ReadonlySet<string>;

  constructor(trailingSlash: HttpSettings['trailingSlash']) {
    this.#slash = trailingSlash === true;
    this.#named = new Set(typeof trailingSlash === 'boolean' ? [] : namesIn(trailingSlash));
  }

  /** `/banks/v1`, or `/banks/v1/`. */
  of(path: string): string {
    const [, resource = ''] = path.split('/', 2);
    return this.#slash || this.#named.has(resource) ? `${path}/` : path;
  }
}
