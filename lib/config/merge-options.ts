import { sectionsOf } from './option.js';
import { ServiceModuleOptions } from './options.js';

/** Key by key, the first that is set wins: `undefined` and `null` count as not set. A `tls` function stands alone. */
export function mergeOptions(...sources: readonly (object | undefined)[]): ServiceModuleOptions {
  const sections = sectionsOf(ServiceModuleOptions);
  const merged: Record<string, unknown> = {};
  for (const source of sources) {
    for (const [key, value] of Object.entries(source ?? {}) as [string, unknown][]) {
      merged[key] = Object.hasOwn(sections, key)
        ? mergeSection(merged[key], value)
        : (merged[key] ?? value ?? undefined);
    }
  }
  return merged;
}

function mergeSection(first: unknown, second: unknown): unknown {
  if (first === undefined || first === null)
    return isPlain(second) ? mergePlain({}, second) : (second ?? undefined);
  return isPlain(first) && isPlain(second) ? mergePlain(first, second) : first;
}

function mergePlain(first: object, second: object): object {
  const set = [...Object.entries(second), ...Object.entries(first)];
  return Object.fromEntries(set.filter(([, value]) => value !== undefined && value !== null));
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
