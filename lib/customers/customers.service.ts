import { Injectable } from '@nestjs/common';
import { validateInput } from '../http/validate-input.js';
import { type ResourcePaths } from '../http/resource-paths.js';
import { type HeaderOptions, type ServiceHttpService } from '../http/service-http.service.js';
import { CreateCustomerDto } from './create-customer.dto.js';

/**
 * A customer as the service returns it. The specification shows none of its fields (2.5, 4): all pass untouched, and
 * what is read from one has to be checked. `customer_id` has its name from 2.4; that an answer holds it is not promised.
 */
export type Customer = { customer_id?: string } & Record<string, unknown>;

/** The customers of the application (specification 4). */
@Injectable()
export class CustomersService {
  readonly #http: ServiceHttpService;
  readonly #path: string;

  constructor(http: ServiceHttpService, paths: ResourcePaths) {
    this.#http = http;
    this.#path = paths.of('/customers/v1');
  }

  /**
   * POST /customers/v1: the JSON body as it came, or `undefined` where the service created the customer and answered
   * without a body, which the specification leaves open (4): `create<Customer | undefined>()` has the compiler ask.
   *
   * Throws ServiceRequestError where the payload is not a customer's, and what {@link ServiceHttpService} throws. A
   * ServiceConnectionError with `outcomeUnknown`, and a ServiceApiError with a status from 500 on, say that the customer
   * may exist.
   */
  async create<T = Customer>(customer: CreateCustomerDto, options?: HeaderOptions): Promise<T> {
    const { app_user_id } = validateInput(CreateCustomerDto, customer);
    return this.#http.post<T>(this.#path, { app_user_id }, options);
  }
}
