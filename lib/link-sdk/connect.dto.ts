import { ArrayNotEmpty, IsArray, IsOptional, IsString, Matches, MaxLength } from 'class-validator';
import { IsCustomerId } from './is-customer-id.js';

const NOT_BLANK = /\S/;
const NO_CONTROL_CHARACTERS = /^\P{Cc}*$/u;

/** What a host's request for an SDK session holds (specification 2.4). */
export class ConnectDto {
  @IsCustomerId()
  customer_id!: string;

  /** The specification lists no values (5.4.8, 5.1.4): any that are not empty pass, doubled ones are merged. */
  @IsArray()
  @ArrayNotEmpty()
  @IsString({ each: true })
  @Matches(NOT_BLANK, { each: true, message: 'each value in permissions must not be blank' })
  @MaxLength(256, { each: true })
  permissions!: string[];

  @IsOptional()
  @IsString()
  @Matches(NOT_BLANK, { message: 'bank_identifier must not be blank' })
  @MaxLength(256)
  @Matches(NO_CONTROL_CHARACTERS, { message: 'bank_identifier must not hold control characters' })
  bank_identifier?: string | undefined;
}
