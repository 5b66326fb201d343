import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { BanksService } from 'nestjs-service';
import { ApiServiceErrors } from '../errors/api-service-errors.js';

@ApiTags('service')
@ApiServiceErrors()
@Controller('banks')
export class BanksController {
  constructor(private readonly banks: BanksService) {}

  @Get()
  @ApiOperation({ summary: 'The banks that a customer can connect' })
  @ApiOkResponse({ description: 'The body of the service as it came' })
  list(): Promise<unknown> {
    return this.banks.list();
  }
}
