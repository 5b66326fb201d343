import {
  ArrayNotEmpty,
  IsArray,
  IsOptional,
  IsString,
  Matches,
  MaxLength,
  ValidateBy,
} from 'class-validator';
import { CUSTOMER_ID_RULE, isCustomerId } from '../auth/scope.js';

const NOT_BLANK = /\S/;
const NO_CONTROL_CHARACTERS = /^\P{Cc}*$/u;

const IsCustomerId = (): PropertyDecorator =>
  ValidateBy(
    { name: 'isCustomerId', validator: { validate: isCustomerId } },
    { message: `customer_id must be ${CUSTOMER_ID_RULE}` },
  );

/** The input of `sessionParameters()`. */
export class SessionDto {
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
