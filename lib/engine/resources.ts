import { BanksService } from '../banks/banks.service.js';
import { type ResourceName } from '../config/resources.js';
import { CustomersService } from '../customers/customers.service.js';
import { type ServiceHttpService } from '../http/service-http.service.js';

/** The classes of the resources in config/resources.ts. */
export const RESOURCE_CLASSES = {
  banks: BanksService,
  customers: CustomersService,
} as const satisfies Record<ResourceName, new (http: ServiceHttpService) => object>;

/** The services of all resources by their names. */
export type Resources = { [Name in ResourceName]: InstanceType<(typeof RESOURCE_CLASSES)[Name]> };

export function createResources(http: ServiceHttpService): Resources {
  const made = Object.entries(RESOURCE_CLASSES).map(([name, Resource]) => [name, new Resource(http)]);
  return Object.fromEntries(made) as Resources;
}
