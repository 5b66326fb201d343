import { withoutSlashes } from './address.js';

/**
 * The resources of the API, each with the path of its collection (docs/service.md#calls). engine/resources.ts has the class
 * of each resource under the same name.
 */
export const RESOURCES = {
  banks: '/banks/v1',
  customers: '/customers/v1',
} as const;

/** The name of a resource of the API. */
export type ResourceName = keyof typeof RESOURCES;

export const RESOURCE_NAMES = Object.keys(RESOURCES) as ResourceName[];

/** The fixed words in paths of the known API. A route shows them, as it shows versions; any other segment may be an id. */
export const PATH_WORDS: ReadonlySet<string> = new Set(
  (
    'account-on-file accounts app-user-id assets balance balances banks beneficiaries cashflows consents customers data ' +
    'destinations direct-debits entities expenses history identities identity income insights intents name-verification ' +
    'payment payment-sources payments payouts reasons refreshes refunds results scheduled-payments standing-orders ' +
    'transactions verifications'
  ).split(' '),
);

/** The collection path at the end of a path or an address, which may have a trailing slash. */
export function collectionAtEnd(path: string): string | undefined {
  const plain = withoutSlashes(path);
  return Object.values(RESOURCES).find((path) => plain.endsWith(path));
}
