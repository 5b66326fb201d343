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

/** The words in the paths of the known API, beside versions and ids. A path's route shows them. */
export const PATH_WORDS: ReadonlySet<string> = new Set(
  (
    'account-on-file accounts app-user-id assets balance balances banks beneficiaries cashflows consents customers data ' +
    'destinations direct-debits entities expenses history identities identity income insights intents name-verification ' +
    'payment payment-sources payments payouts reasons refreshes refunds results scheduled-payments standing-orders ' +
    'transactions verifications'
  ).split(' '),
);

/** The collection that a path or an address ends in, with or without a slash. */
export function collectionAtEnd(path: string): string | undefined {
  const plain = withoutSlashes(path);
  return Object.values(RESOURCES).find((path) => plain.endsWith(path));
}
