import { Injectable } from '@nestjs/common';
import { validateInput } from '../http/validate-input.js';
import { type HeaderOptions, type ParseOption } from '../http/call-options.js';
import { type ServiceHttpService } from '../http/service-http.service.js';
import { CreateCustomerDto } from './create-customer.dto.js';

/**
 * A customer as the service returns it, unchanged. The specification does not show this response, so nothing checks these
 * two fields at run time: pass `parse` to check them. Other fields pass through untouched.
 */
export type Customer = {
  /** The service's id of the customer. */
  customer_id: string;
  /** The host application's own id of its user. */
  app_user_id: string;
} & Record<string, unknown>;

/** The customers of the application (docs/service.md#calls). */
@Injectable()
export class CustomersService {
  readonly #http: ServiceHttpService;
  readonly #path: string;

  /** @internal */
  constructor(http: ServiceHttpService) {
    this.#http = http;
    this.#path = http.pathOf('customers');
  }

  /**
   * POST /customers/v1: the JSON body, unchanged; `undefined` without one, which the service may answer; or what
   * `parse` returns.
   *
   * Throws ServiceRequestError if the payload is not valid or has another field than {@link CreateCustomerDto} (the service
   * shows no other; {@link ServiceHttpService.post} sends any), and what {@link ServiceHttpService} throws. If
   * `outcomeUnknown` is true, the customer may exist.
   */
  async create<T = Customer | undefined>(
    customer: CreateCustomerDto,
    options?: HeaderOptions & ParseOption<T>,
  ): Promise<T> {
    const instead = `ServiceHttpService sends any: http.post('${this.#path}', data)`;
    const { app_user_id } = validateInput(CreateCustomerDto, customer, instead);
    return this.#http.post(this.#path, { app_user_id }, options);
  }
}
