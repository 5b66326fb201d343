import { withoutSlashes } from './address.js';

/** The module's name in logs and errors: `ServiceModule`, or `ServiceModule:ksa`. */
export function moduleLabel(name?: string): string {
  return name === undefined ? 'ServiceModule' : `ServiceModule:${name}`;
}

/** `SERVICE_`, or `SERVICE_KSA_` for the module named `ksa`. */
export function variablePrefix(name?: string): string {
  return name === undefined ? 'SERVICE_' : `SERVICE_${name.replace(/[^A-Za-z0-9]/g, '_').toUpperCase()}_`;
}

/** The namespace of ConfigModule that the module reads: `service`, or `service-ksa`. */
export function namespaceName(name?: string): string {
  return name === undefined ? 'service' : `service-${name}`;
}

/**
 * The resources of the API, each with the path of its collection (docs/service.md#calls). RESOURCE_CLASSES of
 * engine/create-client.ts has the class of each resource under the same name.
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
