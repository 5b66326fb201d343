import {
  ArrayNotEmpty,
  IsArray,
  IsNotEmpty,
  IsOptional,
  IsString,
  Matches,
  MaxLength,
} from 'class-validator';
import { IsCustomerId } from './is-customer-id.js';

const NO_CONTROL_CHARACTERS = /^\P{Cc}*$/u;

/** What a host's request for an SDK session holds (specification 2.4). */
export class ConnectDto {
  @IsCustomerId()
  customer_id!: string;

  /** The specification lists no values (5.4.8, 5.1.4): any that are not empty pass, doubled ones are merged. */
  @IsArray()
  @ArrayNotEmpty()
  @IsString({ each: true })
  @IsNotEmpty({ each: true })
  @MaxLength(256, { each: true })
  permissions!: string[];

  @IsOptional()
  @IsString()
  @IsNotEmpty()
  @MaxLength(256)
  @Matches(NO_CONTROL_CHARACTERS, { message: 'bank_identifier must not hold control characters' })
  bank_identifier?: string;
}
