import { Body, Controller, Post } from '@nestjs/common';
import { ApiBadRequestResponse, ApiCreatedResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { LinkSdkService, type ConnectParameters } from 'nestjs-service';
import { NewLinkSessionDto } from './new-link-session.dto.js';

/** A real host takes customer_id from the session of its signed-in user, never from the browser. */
@ApiTags('service')
@Controller('link-session')
export class LinkSessionController {
  constructor(private readonly sdk: LinkSdkService) {}

  @Post()
  @ApiOperation({ summary: 'The parameters of Service.connect() in the browser' })
  @ApiCreatedResponse({ description: 'access_token or app_token, customer_id, permissions, bank_identifier' })
  @ApiBadRequestResponse({ description: 'The body is not as described' })
  create(@Body() session: NewLinkSessionDto): Promise<ConnectParameters> {
    return this.sdk.connectParameters(session);
  }
}
