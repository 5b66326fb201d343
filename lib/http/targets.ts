import { resolveTarget, type TargetRules } from './target.js';

/** Enough for the paths of an API; where each path is another one, remembering them would only fill the memory. */
const MOST = 200;

/** Resolves addresses by {@link resolveTarget} and remembers those that passed: parsing is most of its cost. */
export class Targets {
  readonly #rules: TargetRules;
  readonly #known = new Map<string, URL>();

  constructor(rules: TargetRules) {
    this.#rules = rules;
  }

  /** Not to be changed by whoever gets it. Throws ServiceRequestError. */
  resolve(path: unknown): URL {
    const known = this.#known.get(path as string);
    if (known) return known;
    const url = resolveTarget(path, this.#rules);
    if (this.#known.size >= MOST) this.#known.clear();
    this.#known.set(path as string, url);
    this.#known.set(url.href, url);
    return url;
  }
}
