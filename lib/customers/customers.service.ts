import { IsNotEmpty, IsString, MaxLength } from 'class-validator';
import { Injectable } from '@nestjs/common';
import { validateInput } from '../http/validate-input.js';
import { type HeaderOptions, type ParseOption } from '../http/call-options.js';
import { type ServiceHttpService } from '../http/service-http.service.js';

/** Body of POST /customers/v1 (docs/service.md#calls). */
export class CreateCustomerDto {
  /** The application's own id of its user. */
  @MaxLength(1024)
  @IsNotEmpty()
  @IsString()
  app_user_id!: string;

  /**
   * @internal The metadata that the compiler plugin of @nestjs/swagger would add, so that applications get an OpenAPI
   * schema.
   */
  static _OPENAPI_METADATA_FACTORY(): object {
    return {
      app_user_id: {
        type: () => String,
        description: "The application's own id of its user",
        minLength: 1,
        maxLength: 1024,
        example: 'user-42',
      },
    };
  }
}

/**
 * A customer as the service returns it, unchanged. The specification does not document this response, so the module
 * does not check these fields at run time. To check them, pass `parse`.
 */
export type Customer = {
  /** The service's id of the customer. */
  customer_id: string;
  /** The application's own id of its user. */
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
    this.#path = http.collectionPath('customers');
  }

  /**
   * POST /customers/v1. Returns the JSON body unchanged, or the result of `parse`. If the response has no body:
   * `undefined`.
   *
   * Throws ServiceRequestError if a field is not valid or is not one of {@link CreateCustomerDto}. To send other
   * fields, use {@link ServiceHttpService.post}. Also throws what {@link ServiceHttpService} throws. If an error's
   * `outcomeUnknown` is true, the customer may have been created.
   */
  async create<T = Customer | undefined>(
    customer: CreateCustomerDto,
    options?: HeaderOptions & ParseOption<T>,
  ): Promise<T> {
    const instead = `to send other fields, use ServiceHttpService: http.post('${this.#path}', data)`;
    const { app_user_id } = validateInput(CreateCustomerDto, customer, instead);
    return this.#http.post(this.#path, { app_user_id }, options);
  }
}
