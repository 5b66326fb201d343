import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { ConnectDto } from 'nestjs-service';

/** The module's DTO, its rules included, described for the Swagger page. */
export class NewLinkSessionDto extends ConnectDto {
  @ApiProperty({ description: "The service's id of the customer", example: 'customer-42' })
  declare customer_id: string;

  @ApiProperty({ description: 'What the session may do', example: ['identity', 'accounts'] })
  declare permissions: string[];

  @ApiPropertyOptional({ description: 'The bank to connect', example: 'ALPHA_BANK' })
  declare bank_identifier?: string;
}
