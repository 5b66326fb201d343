import { Injectable } from '@nestjs/common';
import { type AnswerParser, type ParsedAnswer, type ParseOption } from '../http/answer-parser.js';
import { validateInput } from '../http/validate-input.js';
import { type HeaderOptions, type ServiceHttpService } from '../http/service-http.service.js';
import { CreateCustomerDto } from './create-customer.dto.js';

/**
 * A customer as the service returns it. The specification shows none of its fields (2.5, 4), so all pass unchanged:
 * check what you read. The name `customer_id` is from 2.4; an answer may not have it.
 */
export type Customer = { customer_id?: string } & Record<string, unknown>;

/** The customers of the application (specification 4). */
@Injectable()
export class CustomersService {
  readonly #http: ServiceHttpService;
  readonly #path: string;

  /** @internal */
  constructor(http: ServiceHttpService) {
    this.#http = http;
    this.#path = http.pathOf('/customers/v1');
  }

  /**
   * POST /customers/v1: the JSON body as `parse` returns it. A ServiceApiError `invalid_response` does not undo the call:
   * the customer exists.
   */
  create<Parser extends AnswerParser>(
    customer: CreateCustomerDto,
    options: HeaderOptions & ParseOption<Parser>,
  ): Promise<ParsedAnswer<Parser>>;
  /**
   * POST /customers/v1: the JSON body, unchanged. `undefined` where the service created the customer and answered without
   * a body, which the specification allows (4). With `create<Customer | undefined>()` the compiler makes you check that.
   *
   * Throws ServiceRequestError where the payload is not valid, and what {@link ServiceHttpService} throws. After a
   * ServiceConnectionError with `outcomeUnknown`, or a ServiceApiError with a status of 500 or more, the customer may
   * exist.
   */
  create<T = Customer>(customer: CreateCustomerDto, options?: HeaderOptions): Promise<T>;
  async create(customer: CreateCustomerDto, options?: HeaderOptions): Promise<unknown> {
    const { app_user_id } = validateInput(CreateCustomerDto, customer);
    return this.#http.post(this.#path, { app_user_id }, options);
  }
}
