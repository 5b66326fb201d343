import { Body, Controller, Get, Post } from '@nestjs/common';
import { CreateCustomerDto } from 'nestjs-service';
import { BankingService } from './banking.service.js';

@Controller()
export class BankingController {
  constructor(private readonly banking: BankingService) {}

  @Get('banks')
  banks(): Promise<unknown> {
    return this.banking.banks.list();
  }

  @Post('customers')
  create(@Body() customer: CreateCustomerDto): Promise<unknown> {
    return this.banking.customers.create(customer);
  }
}
