import { BanksService } from '../banks/banks.service.js';
import { type ResourceName } from '../config/http.options.js';
import { CustomersService } from '../customers/customers.service.js';
import { type ServiceHttpService } from '../http/service-http.service.js';

/** The resources of the API (docs/service.md#calls): their classes, and the methods that doubles can replace. */
export const RESOURCES = {
  banks: { type: BanksService, methods: ['list'] },
  customers: { type: CustomersService, methods: ['create'] },
} as const satisfies Record<ResourceName, ResourceEntry>;

interface ResourceEntry {
  type: new (http: ServiceHttpService) => object;
  methods: readonly string[];
}

/** The services of all resources by their names. */
export type Resources = { [Name in ResourceName]: InstanceType<(typeof RESOURCES)[Name]['type']> };

export function createResources(http: ServiceHttpService): Resources {
  const made = Object.entries(RESOURCES).map(([name, { type: Resource }]) => [name, new Resource(http)]);
  return Object.fromEntries(made) as Resources;
}
