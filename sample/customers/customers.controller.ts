import { Body, Controller, Post, Res } from '@nestjs/common';
import { ApiCreatedResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { CreateCustomerDto, CustomersService, ServiceHttpService, type Customer } from 'nestjs-service';
import { type ServerResponse } from 'node:http';
import { ApiServiceErrors } from '../errors/api-service-errors.js';
import { CustomerSessions } from '../session/customer-session.js';
import { customerOf } from './customer-of.js';

/** In a real application app_user_id comes from the signed-in user. Here, the request names any user. */
@ApiTags('service')
@ApiServiceErrors()
@Controller('customers')
export class CustomersController {
  constructor(
    private readonly customers: CustomersService,
    private readonly http: ServiceHttpService,
    private readonly sessions: CustomerSessions,
  ) {}

  @Post()
  @ApiOperation({ summary: 'Creates or finds the customer of one of our users, and begins a session' })
  @ApiCreatedResponse({ description: 'The customer as the service returned it' })
  async create(
    @Body() { app_user_id }: CreateCustomerDto,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<Customer> {
    const customer = await customerOf(this.customers, this.http, app_user_id);
    this.sessions.begin(response, customer);
    return customer;
  }
}
