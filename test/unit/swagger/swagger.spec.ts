import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Body, Controller, Get, Post, type INestApplication } from '@nestjs/common';
import { ApiNotFoundResponse, ApiProperty, DocumentBuilder, PickType, SwaggerModule } from '@nestjs/swagger';
import { type OpenAPIObject } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { ConnectDto, CreateCustomerDto, LinkSessionDto } from 'nestjs-service';
import { ApiServiceErrors, ServiceErrorAnswer } from 'nestjs-service/swagger';
import { serviceErrors } from 'nestjs-service/testing';
import { toAnswer } from '../../../lib/http/exception-answer.js';

class OwnWords extends ConnectDto {
  @ApiProperty({ description: 'In the words of the host' })
  declare customer_id: string;
}
class OneField extends PickType(ConnectDto, ['permissions']) {}

@ApiServiceErrors()
@Controller()
class HostController {
  @Post('customers')
  create(@Body() customer: CreateCustomerDto): CreateCustomerDto {
    return customer;
  }
  @Post('connect')
  connect(@Body() request: ConnectDto): ConnectDto {
    return request;
  }
  @Post('session')
  session(@Body() request: LinkSessionDto): LinkSessionDto {
    return request;
  }
  @Post('own')
  own(@Body() request: OwnWords): OwnWords {
    return request;
  }
  @Post('one')
  one(@Body() request: OneField): OneField {
    return request;
  }
  @Get('bank')
  @ApiNotFoundResponse({ description: 'No such bank' })
  bank(): string {
    return '';
  }
}

describe('the Swagger document of a host', () => {
  let app: INestApplication;
  let document: OpenAPIObject;

  beforeAll(async () => {
    const module = await Test.createTestingModule({ controllers: [HostController] }).compile();
    app = module.createNestApplication({ logger: false });
    await app.init();
    document = SwaggerModule.createDocument(app, new DocumentBuilder().build());
  });
  afterAll(() => app.close());

  const schema = (name: string) =>
    document.components?.schemas?.[name] as { required: string[]; properties: Record<string, object> };

  it.each([
    ['CreateCustomerDto', ['app_user_id'], ['app_user_id']],
    ['ConnectDto', ['customer_id', 'permissions'], ['bank_identifier', 'customer_id', 'permissions']],
    ['LinkSessionDto', ['permissions'], ['bank_identifier', 'permissions']],
    ['OneField', ['permissions'], ['permissions']],
  ])('has the fields of %s, without a line in the host', (name, required, properties) => {
    expect([...schema(name).required].sort()).toEqual(required);
    expect(Object.keys(schema(name).properties).sort()).toEqual(properties);
  });

  it('has their types and limits', () => {
    expect(schema('ConnectDto').properties).toMatchObject({
      customer_id: { type: 'string', maxLength: 128 },
      permissions: { type: 'array', items: { type: 'string' }, minItems: 1 },
      bank_identifier: { type: 'string', maxLength: 256 },
    });
  });

  it("has the host's own words where a class of the host gives some", () => {
    expect(schema('OwnWords').properties).toMatchObject({
      customer_id: { type: 'string', description: 'In the words of the host' },
      permissions: { type: 'array' },
    });
  });

  it('has an answer for each status of the filter', () => {
    const { responses } = document.paths['/bank']?.get ?? {};
    const failures = [
      ...[400, 403, 404, 409, 422, 429, 500].map((status) => serviceErrors.api(status)),
      serviceErrors.connection('timeout'),
      serviceErrors.connection('reset'),
      serviceErrors.token(),
    ];
    const statuses = new Set(failures.map((error) => String(toAnswer(error).status)));
    expect(Object.keys(responses ?? {}).filter((status) => status !== '200')).toEqual([...statuses].sort());
    const content = { 'application/json': { schema: { $ref: '#/components/schemas/ServiceErrorAnswer' } } };
    expect(responses?.['503']).toMatchObject({ content, headers: { 'Retry-After': {} } });
    expect(responses?.['502']).toMatchObject({ content });
    expect(schema(ServiceErrorAnswer.name).required).toEqual(['statusCode', 'message', 'code']);
  });

  it("leaves a method's own answer", () => {
    expect(document.paths['/bank']?.get?.responses['404']).toEqual({ description: 'No such bank' });
    expect(document.paths['/customers']?.post?.responses['404']).toMatchObject({
      description: 'The service does not know it',
    });
  });
});
