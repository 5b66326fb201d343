import { withoutSlashes } from './address.js';

/**
 * The resources of the API (docs/service.md#calls): the path of the collection, and the methods that doubles can replace.
 * Their classes stand in engine/resources.ts, by the same names.
 */
export const RESOURCES = {
  banks: { path: '/banks/v1', methods: ['list'] },
  customers: { path: '/customers/v1', methods: ['create'] },
} as const;

/** A resource of the API. */
export type ResourceName = keyof typeof RESOURCES;

export const RESOURCE_NAMES = Object.keys(RESOURCES) as ResourceName[];

/** The collection that a path or an address ends in, a slash at its end aside. */
export function collectionAtEnd(path: string): string | undefined {
  const plain = withoutSlashes(path);
  return Object.values(RESOURCES).find((resource) => plain.endsWith(resource.path))?.path;
}
