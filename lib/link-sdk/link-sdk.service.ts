import {
  ArrayNotEmpty,
  IsArray,
  IsOptional,
  IsString,
  Matches,
  MaxLength,
  ValidateBy,
} from 'class-validator';
import { CUSTOMER_ID_RULE, isCustomerId } from '../auth/access-token.js';
import { Injectable } from '@nestjs/common';
import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type ServiceEnvironment } from '../config/options.js';
import { type ResolvedOptions } from '../config/resolve-options.js';
import { type Secret } from '../config/secret.js';
import { validateInput } from '../http/validate-input.js';
import { checkTimeout } from '../config/http.options.js';
import { type CallOptions } from '../http/call-options.js';

const NOT_BLANK = /\S/;
const NO_CONTROL_CHARACTERS = /^\P{Cc}*$/u;

const IsCustomerId = (): PropertyDecorator =>
  ValidateBy(
    { name: 'isCustomerId', validator: { validate: isCustomerId } },
    { message: `customer_id must be ${CUSTOMER_ID_RULE}` },
  );

/** The input of `sessionParameters()`. */
class SessionDto {
  @IsCustomerId()
  customer_id!: string;
}

/**
 * What a browser may choose: `ConnectDto` without the customer, whom the application takes from its own session
 * (docs/service.md#linksdk-parameters).
 */
export class LinkSessionDto {
  /** Texts that are not blank. The service documents no list of values. Duplicates are removed. */
  // Decorators run from the last to the first, and the first one that fails is reported.
  @MaxLength(256, { each: true })
  @Matches(NOT_BLANK, { each: true, message: 'each value in permissions must not be blank' })
  @IsString({ each: true })
  @ArrayNotEmpty()
  @IsArray({ message: "permissions must be an array of texts, for example ['identity']" })
  permissions!: string[];

  /** The bank to connect: 1 to 256 characters without control characters. */
  @IsOptional()
  @Matches(NO_CONTROL_CHARACTERS, { message: 'bank_identifier must not contain control characters' })
  @MaxLength(256)
  @Matches(NOT_BLANK, { message: 'bank_identifier must not be blank' })
  @IsString()
  bank_identifier?: string | undefined;

  /**
   * @internal The metadata that the compiler plugin of @nestjs/swagger would add, so that applications get an OpenAPI
   * schema.
   */
  static _OPENAPI_METADATA_FACTORY(): object {
    return {
      permissions: {
        type: () => [String],
        description: 'What the session may do',
        minItems: 1,
        example: ['identity', 'accounts'],
      },
      bank_identifier: {
        type: () => String,
        required: false,
        description: 'The bank to connect',
        minLength: 1,
        maxLength: 256,
        example: 'ALPHA_BANK',
      },
    };
  }
}

/** The input of `connectParameters()`: a request for an SDK session. */
export class ConnectDto extends LinkSessionDto {
  /** 1 to 128 letters, digits and `. _ ~ : @ + = -`, but not only dots. Other characters could widen the token's scope. */
  @IsCustomerId()
  customer_id!: string;

  /** @internal */
  static override _OPENAPI_METADATA_FACTORY(): object {
    return {
      customer_id: {
        type: () => String,
        description: "The service's id of the customer",
        minLength: 1,
        maxLength: 128,
        example: 'customer-42',
      },
    };
  }
}

/** Parameters for every method of the SDK (docs/service.md#linksdk-parameters). All of them may be sent to a browser. */
export interface SessionParameters {
  /** Absent if no app token is set, or if `linkSdk.includeAppToken` is false and there are OAuth credentials. */
  app_token?: string;
  /** The customer-scoped token, if there are OAuth credentials. */
  access_token?: string;
  customer_id: string;
  /** Present only in the sandbox. */
  sandbox?: true;
}

/** The parameters of `Service.connect()`. */
export interface ConnectParameters extends SessionParameters {
  permissions: string[];
  bank_identifier?: string;
}

const ADD_IT = 'add it to what the method returns: { ...parameters, name: value }';

/** Parameters for LinkSDK sessions in the browser (docs/service.md#linksdk-parameters). */
@Injectable()
export class LinkSdkService {
  /** The environment of the sessions. In the sandbox, the SDK's parameters include `sandbox: true`. */
  readonly environment: ServiceEnvironment;
  /** Absent without OAuth credentials. */
  readonly #getToken: ServiceAuthService['getCustomerToken'] | undefined;
  /** Absent if the parameters do not include it. */
  readonly #appToken: Secret | undefined;

  /** @internal */
  constructor(options: ResolvedOptions, auth: Pick<ServiceAuthService, 'getCustomerToken'>) {
    this.environment = options.environment;
    const hasOAuth = options.oauth !== undefined;
    // Bound now, so that a test that later replaces `auth.getCustomerToken` does not change sessions.
    this.#getToken = hasOAuth ? auth.getCustomerToken.bind(auth) : undefined;
    this.#appToken = hasOAuth && !options.linkSdk.includeAppToken ? undefined : options.appToken;
  }

  /**
   * Returns the parameters that every method of the SDK takes for one customer. Add the method's own parameters to them.
   * - `customer_id`
   * - `app_token`, if one is set
   * - `access_token`, with OAuth credentials: a customer-scoped token that is still valid for `linkSdk.minTokenLife`
   * - `sandbox: true`, in the sandbox
   * @throws ServiceRequestError if the request is not valid; ServiceTokenError or ServiceConnectionError if there is no
   * token; `signal.reason` if the signal aborts
   * @example { ...(await sdk.sessionParameters({ customer_id })), payment_intent_id }
   */
  async sessionParameters(
    request: Pick<ConnectDto, 'customer_id'>,
    options?: CallOptions,
  ): Promise<SessionParameters> {
    return this.#parametersFor(validateInput(SessionDto, request, ADD_IT).customer_id, options);
  }

  /**
   * Returns the parameters of `Service.connect()`: the {@link sessionParameters}, the permissions without duplicates,
   * and the bank.
   * @throws as {@link sessionParameters}
   */
  async connectParameters(request: ConnectDto, options?: CallOptions): Promise<ConnectParameters> {
    const { customer_id, permissions, bank_identifier } = validateInput(ConnectDto, request, ADD_IT);
    return {
      ...(await this.#parametersFor(customer_id, options)),
      permissions: [...new Set(permissions)],
      ...(bank_identifier && { bank_identifier }),
    };
  }

  async #parametersFor(
    customer_id: string,
    { signal, timeout }: CallOptions = {},
  ): Promise<SessionParameters> {
    // Without OAuth no token is requested, so nothing else would check the time-out.
    checkTimeout(timeout);
    const token = await this.#getToken?.(customer_id, { signal, timeout });
    return {
      ...(this.#appToken && { app_token: this.#appToken.reveal() }),
      ...(token && { access_token: token.accessToken }),
      customer_id,
      ...(this.environment === 'sandbox' && { sandbox: true as const }),
    };
  }
}
