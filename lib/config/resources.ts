import { withoutSlashes } from './address.js';

/**
 * The resources of the API by the paths of their collections (docs/service.md#calls). Their classes stand in
 * engine/resources.ts, by the same names.
 */
export const RESOURCES = {
  banks: '/banks/v1',
  customers: '/customers/v1',
} as const;

/** A resource of the API. */
export type ResourceName = keyof typeof RESOURCES;

export const RESOURCE_NAMES = Object.keys(RESOURCES) as ResourceName[];

/** The collection that a path or an address ends in, with or without a slash. */
export function collectionAtEnd(path: string): string | undefined {
  const plain = withoutSlashes(path);
  return Object.values(RESOURCES).find((path) => plain.endsWith(path));
}
