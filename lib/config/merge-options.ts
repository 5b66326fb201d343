import { sectionsOf } from './option.js';
import { ServiceModuleOptions } from './options.js';

/**
 * Merges options key by key. The first value wins; `undefined` and `null` count as not set. A `tls` function is not
 * merged with other sources. The result and its sections are copies.
 */
export function mergeOptions(...sources: readonly (object | undefined)[]): ServiceModuleOptions {
  const sections = sectionsOf(ServiceModuleOptions);
  const merged = new Map<string, unknown>();
  for (const source of sources) {
    for (const [key, value] of setEntries(source ?? {})) {
      const first = merged.get(key);
      merged.set(key, Object.hasOwn(sections, key) ? mergeSection(first, value) : (first ?? value));
    }
  }
  return Object.fromEntries(merged);
}

function mergeSection(first: unknown, second: unknown): unknown {
  if (!isObject(second) || !isObject(first ?? {})) return first ?? second;
  return Object.fromEntries([...setEntries(second), ...setEntries(first ?? {})]);
}

function setEntries(source: object): [string, unknown][] {
  return Object.entries(source).filter(([, value]) => value !== undefined && value !== null);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
