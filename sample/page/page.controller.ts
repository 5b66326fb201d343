import {
  BadGatewayException,
  Body,
  Controller,
  Get,
  Header,
  HttpCode,
  Inject,
  Post,
  Req,
  Res,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { CreateCustomerDto, LinkSessionDto, type ConnectParameters } from 'nestjs-service';
import { type ServerResponse } from 'node:http';
import { customerOf } from '../customers/customer-of.js';
import { CustomerGuard, type CustomerRequest, CustomerSessions } from '../session/customer-session.js';
import { HintFilter } from './hint.filter.js';
import { PAGE_SERVICES, type PageServices } from './services-in-use.js';

/** The routes that the page calls. */
@ApiExcludeController()
@UseFilters(HintFilter)
@Controller('page')
export class PageController {
  constructor(
    @Inject(PAGE_SERVICES) private readonly services: PageServices,
    private readonly sessions: CustomerSessions,
  ) {}

  @Get('banks')
  async banks(): Promise<unknown> {
    const banks = await this.services.current.banks.list({ timeout: 3_000 });
    return Array.isArray(banks) ? banks : [];
  }

  @Post('customers')
  async createCustomer(
    @Body() { app_user_id }: CreateCustomerDto,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<{ customer_id: string }> {
    const { customers, http } = this.services.current;
    const customerId = this.sessions.begin(response, await customerOf(customers, http, app_user_id));
    if (customerId === undefined)
      throw new BadGatewayException('The service created a customer, but its response has no customer_id.');
    return { customer_id: customerId };
  }

  /** Returns when the browser's customer token expires, but not the token. */
  @Get('customer-token')
  @UseGuards(CustomerGuard)
  async customerToken(@Req() { customerId }: CustomerRequest): Promise<{ expires_at: Date }> {
    const { expiresAt } = await this.services.current.auth.getCustomerToken(customerId);
    return { expires_at: expiresAt };
  }

  /** Uses the customer of the visitor's session, so that the browser cannot name another one. */
  @Post('link-session')
  @HttpCode(200)
  @UseGuards(CustomerGuard)
  @Header('Cache-Control', 'no-store')
  linkSession(
    @Body() wish: LinkSessionDto,
    @Req() { customerId }: CustomerRequest,
  ): Promise<ConnectParameters> {
    const { permissions, bank_identifier } = wish;
    return this.services.current.sdk.connectParameters({
      customer_id: customerId,
      permissions,
      bank_identifier,
    });
  }
}
