import { Body, Controller, Post } from '@nestjs/common';
import { ApiCreatedResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { CreateCustomerDto, CustomersService, type Customer } from 'nestjs-service';
import { ApiServiceErrors } from 'nestjs-service/swagger';

@ApiTags('service')
@ApiServiceErrors()
@Controller('customers')
export class CustomersController {
  constructor(private readonly customers: CustomersService) {}

  @Post()
  @ApiOperation({ summary: 'Creates a customer of the service for one of our users' })
  @ApiCreatedResponse({ description: 'The customer as the service returned it' })
  create(@Body() customer: CreateCustomerDto): Promise<Customer> {
    return this.customers.create(customer);
  }
}
