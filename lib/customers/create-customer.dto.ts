import { IsNotEmpty, IsString, MaxLength } from 'class-validator';

/** Body of POST /customers/v1 (specification 2.3). */
export class CreateCustomerDto {
  /** The host application's own id of its user. */
  @MaxLength(1024)
  @IsNotEmpty()
  @IsString()
  app_user_id!: string;
}
