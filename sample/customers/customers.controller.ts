import { Body, Controller, Post } from '@nestjs/common';
import { ApiBadRequestResponse, ApiCreatedResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { CustomersService, type Customer } from 'nestjs-service';
import { NewCustomerDto } from './new-customer.dto.js';

@ApiTags('service')
@Controller('customers')
export class CustomersController {
  constructor(private readonly customers: CustomersService) {}

  @Post()
  @ApiOperation({ summary: 'Creates a customer of the service for one of our users' })
  @ApiCreatedResponse({ description: 'The customer as the service returned it' })
  @ApiBadRequestResponse({ description: 'The body is not as described' })
  create(@Body() customer: NewCustomerDto): Promise<Customer> {
    return this.customers.create(customer);
  }
}
