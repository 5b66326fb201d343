import { ApiProperty } from '@nestjs/swagger';
import { CreateCustomerDto } from 'nestjs-service';

/** The module's DTO, its rules included, described for the Swagger page. */
export class NewCustomerDto extends CreateCustomerDto {
  @ApiProperty({ description: "This application's own id of the user", example: 'user-42' })
  declare app_user_id: string;
}
