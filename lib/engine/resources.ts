import { BanksService } from '../banks/banks.service.js';
import { type ResourceName } from '../config/resources.js';
import { CustomersService } from '../customers/customers.service.js';
import { type ServiceHttpService } from '../http/service-http.service.js';

/** The class of each resource that config/resources.ts lists. */
export const RESOURCE_CLASSES = {
  banks: BanksService,
  customers: CustomersService,
} as const satisfies Record<ResourceName, new (http: ServiceHttpService) => object>;

/** One service for each resource, by name. */
export type Resources = { [Name in ResourceName]: InstanceType<(typeof RESOURCE_CLASSES)[Name]> };

export function createResources(http: ServiceHttpService): Resources {
  const entries = Object.entries(RESOURCE_CLASSES).map(([name, Resource]) => [name, new Resource(http)]);
  return Object.fromEntries(entries) as Resources;
}
