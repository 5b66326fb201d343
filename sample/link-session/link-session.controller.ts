import { Body, Controller, Post } from '@nestjs/common';
import { ApiCreatedResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { ConnectDto, LinkSdkService, type ConnectParameters } from 'nestjs-service';
import { ApiServiceErrors } from 'nestjs-service/swagger';

/** A real host takes customer_id from the session of its signed-in user, never from the browser. */
@ApiTags('service')
@ApiServiceErrors()
@Controller('link-session')
export class LinkSessionController {
  constructor(private readonly sdk: LinkSdkService) {}

  @Post()
  @ApiOperation({ summary: 'The parameters of Service.connect() in the browser' })
  @ApiCreatedResponse({ description: 'access_token or app_token, customer_id, permissions, bank_identifier' })
  create(@Body() session: ConnectDto): Promise<ConnectParameters> {
    return this.sdk.connectParameters(session);
  }
}
