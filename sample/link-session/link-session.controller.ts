import { Body, Controller, Header, Post, Req, UseGuards } from '@nestjs/common';
import { ApiCreatedResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { LinkSdkService, LinkSessionDto, type ConnectParameters } from 'nestjs-service';
import { ApiServiceErrors } from '../errors/api-service-errors.js';
import { CustomerGuard, type CustomerRequest } from '../session/customer-session.js';

/** Uses the customer of the visitor's session, so that the caller cannot name another one. */
@ApiTags('service')
@ApiServiceErrors()
@Controller('link-session')
export class LinkSessionController {
  constructor(private readonly sdk: LinkSdkService) {}

  @Post()
  @UseGuards(CustomerGuard)
  @Header('Cache-Control', 'no-store')
  @ApiOperation({
    summary: 'The parameters of Service.connect() in the browser, for the customer of the session',
  })
  @ApiCreatedResponse({
    description: 'app_token, access_token, customer_id, sandbox, permissions, bank_identifier',
  })
  create(
    @Body() session: LinkSessionDto,
    @Req() { customerId }: CustomerRequest,
  ): Promise<ConnectParameters> {
    return this.sdk.connectParameters({ ...session, customer_id: customerId });
  }
}
