import { IsNotEmpty, IsString, MaxLength } from 'class-validator';

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
