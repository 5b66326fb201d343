import { Injectable } from '@nestjs/common';
import { validateInput } from '../config/validate-input.js';
import { type ResourcePaths } from '../http/resource-paths.js';
import { type ServiceHttpService, type CallOptions } from '../http/service-http.service.js';
import { CreateCustomerDto } from './create-customer.dto.js';

/** A customer as the service returns it; its fields are not in the specification (2.5, 4) and pass untouched. */
export type Customer = Record<string, unknown>;

/** The customers of the application (specification 4). */
@Injectable()
export class CustomersService {
  constructor(
    private readonly http: ServiceHttpService,
    private readonly paths: ResourcePaths,
  ) {}

  /**
   * POST /customers/v1. Throws ServiceRequestError where the payload is not a customer's, and what
   * {@link ServiceHttpService} throws. A ServiceConnectionError with `outcomeUnknown` says that the customer may exist.
   */
  async create(customer: CreateCustomerDto, options?: CallOptions): Promise<Customer> {
    const { app_user_id } = validateInput(CreateCustomerDto, customer);
    return this.http.post<Customer>(this.paths.of('/customers/v1'), { app_user_id }, options);
  }
}
