import { Body, Controller, Post, Res } from '@nestjs/common';
import { ApiCreatedResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { CreateCustomerDto, CustomersService, type Customer } from 'nestjs-service';
import { type ServerResponse } from 'node:http';
import { ApiServiceErrors } from '../errors/api-service-errors.js';
import { CustomerSessions } from '../session/customer-session.js';

/** A real host takes app_user_id from its signed-in user. Here, whoever creates a customer gets its session. */
@ApiTags('service')
@ApiServiceErrors()
@Controller('customers')
export class CustomersController {
  constructor(
    private readonly customers: CustomersService,
    private readonly sessions: CustomerSessions,
  ) {}

  @Post()
  @ApiOperation({ summary: 'Creates a customer of the service for one of our users, and begins a session' })
  @ApiCreatedResponse({ description: 'The customer as the service returned it' })
  async create(
    @Body() customer: CreateCustomerDto,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<Customer | undefined> {
    const created = await this.customers.create(customer);
    this.sessions.begin(response, created);
    return created;
  }
}
