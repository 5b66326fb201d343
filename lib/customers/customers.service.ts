import { Injectable } from '@nestjs/common';
import { type AnswerParser, type ParsedAnswer, type ParseOption } from '../http/answer-parser.js';
import { validateInput } from '../http/validate-input.js';
import { type HeaderOptions } from '../http/call-options.js';
import { type ServiceHttpService } from '../http/service-http.service.js';
import { CreateCustomerDto } from './create-customer.dto.js';

/** A customer as the service returns it, unchanged. The service shows no fields of one: check what you read. */
export type Customer = { customer_id?: string } & Record<string, unknown>;

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

  /** The JSON body as `parse` returns it. After a ServiceApiError `invalid_response` the customer exists. */
  create<Parser extends AnswerParser>(
    customer: CreateCustomerDto,
    options: HeaderOptions & ParseOption<Parser>,
  ): Promise<ParsedAnswer<Parser>>;
  /**
   * POST /customers/v1: the JSON body, unchanged; `undefined` without one, which the service may answer.
   *
   * Throws ServiceRequestError if the payload is not valid or has another field than {@link CreateCustomerDto} (the service
   * shows no other; {@link ServiceHttpService.post} sends any), and what {@link ServiceHttpService} throws. After a
   * ServiceConnectionError with `outcomeUnknown`, or a status of 500 or more, the customer may exist.
   */
  create<T = Customer | undefined>(customer: CreateCustomerDto, options?: HeaderOptions): Promise<T>;
  async create(customer: CreateCustomerDto, options?: HeaderOptions): Promise<unknown> {
    const instead = `ServiceHttpService sends any: http.post('${this.#path}', data)`;
    const { app_user_id } = validateInput(CreateCustomerDto, customer, instead);
    return this.#http.post(this.#path, { app_user_id }, options);
  }
}
