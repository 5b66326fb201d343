import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  Body,
  Controller,
  Get,
  Post,
  ValidationPipe,
  type BadRequestException,
  type INestApplication,
} from '@nestjs/common';
import { ApiNotFoundResponse, ApiProperty, DocumentBuilder, PickType, SwaggerModule } from '@nestjs/swagger';
import { type OpenAPIObject } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { ConnectDto, CreateCustomerDto, LinkSessionDto } from 'nestjs-service';
import { ApiServiceErrors, ServiceErrorAnswer } from 'nestjs-service/swagger';
import { serviceErrors } from 'nestjs-service/testing';
import { rejection } from '../../helpers/start-module.js';
import { answerOf } from '../../../lib/http/exception-answer.js';

class OwnWords extends ConnectDto {
  @ApiProperty({ description: 'In the words of the host' })
  declare customer_id: string;
}
class OneField extends PickType(ConnectDto, ['permissions']) {}

class Problem {
  @ApiProperty()
  title!: string;
}

@ApiServiceErrors({ type: Problem, contentType: 'application/problem+json' })
@Controller('problems')
class ProblemController {
  @Get()
  problems(): string {
    return '';
  }
}

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

interface Schema {
  required: string[];
  properties: Record<string, object>;
}

describe('the Swagger document of a host', () => {
  let app: INestApplication;
  let document: OpenAPIObject;

  beforeAll(async () => {
    const module = await Test.createTestingModule({
      controllers: [HostController, ProblemController],
    }).compile();
    app = module.createNestApplication({ logger: false });
    await app.init();
    document = SwaggerModule.createDocument(app, new DocumentBuilder().build());
  });
  afterAll(() => app.close());

  const schema = (name: string) => document.components?.schemas?.[name] as Schema;

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
      ...[400, 403, 409, 422, 429, 500].map((status) => serviceErrors.api(status)),
      serviceErrors.api(404, { path: '/customers/v1/c-1' }),
      serviceErrors.connection('timeout'),
      serviceErrors.connection('reset'),
      serviceErrors.token(),
    ];
    const statuses = new Set(failures.map((error) => String(answerOf(error).status)));
    expect(Object.keys(responses ?? {}).filter((status) => status !== '200')).toEqual([...statuses].sort());
    const content = { 'application/json': { schema: { $ref: '#/components/schemas/ServiceErrorAnswer' } } };
    expect(responses?.['503']).toMatchObject({
      content,
      headers: { 'Retry-After': { schema: { type: 'integer' } } },
    });
    expect(responses?.['502']).toMatchObject({ content });
    const { required, properties } = schema(ServiceErrorAnswer.name);
    expect(required).toEqual(['statusCode', 'message', 'code']);
    const { status, message } = answerOf(serviceErrors.token());
    expect(properties).toMatchObject({
      statusCode: { type: 'number', example: status },
      message: { type: 'string', example: message },
      code: { type: 'string' },
    });
  });

  it("has two forms of a 400: the filter's, and that of Nest's ValidationPipe", async () => {
    const { responses } = document.paths['/customers']?.post ?? {};
    const { content } = responses?.['400'] as { content: Record<string, { schema: { oneOf: Schema[] } }> };
    const { oneOf } = content['application/json'].schema;
    const [ours, nests] = oneOf;
    expect(oneOf).toHaveLength(2);
    expect(ours).toEqual({ $ref: '#/components/schemas/ServiceErrorAnswer' });
    const refuse = (): Promise<unknown> =>
      new ValidationPipe().transform({}, { type: 'body', metatype: CreateCustomerDto });
    const answer = ((await rejection(refuse())) as BadRequestException).getResponse() as Record<
      string,
      unknown
    >;
    expect(nests.required).toEqual(expect.arrayContaining(Object.keys(answer)));
    expect(answer.message).toContainEqual(expect.any(String));
    const { statusCode, error } = answer;
    expect(nests).toMatchObject({ type: typeof answer });
    expect(nests.properties).toEqual({
      statusCode: { type: typeof statusCode, example: statusCode },
      message: { oneOf: [{ type: 'array', items: { type: 'string' } }, { type: 'string' }] },
      error: { type: typeof error, example: error },
    });
    // An answer has one of the two forms, never both.
    expect(schema(ServiceErrorAnswer.name).required).not.toEqual(expect.arrayContaining(['error']));
    expect(answer).not.toHaveProperty('code');
  });

  it('has another form of all of them, where the filter of the host has', () => {
    const { responses = {} } = document.paths['/problems']?.get ?? {};
    const ours = document.paths['/customers']?.post?.responses ?? {};
    const { 200: _, ...failures } = responses;
    const { 201: __, ...expected } = ours;
    expect(Object.keys(failures)).toEqual(Object.keys(expected));
    const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
    for (const failure of Object.values(failures)) expect(failure).toMatchObject({ content });
    expect(Object.keys(schema('Problem').properties)).toEqual(['title']);
  });

  it("leaves a method's own answer", () => {
    expect(document.paths['/bank']?.get?.responses['404']).toEqual({ description: 'No such bank' });
    expect(document.paths['/customers']?.post?.responses['404']).toMatchObject({
      description: 'The service does not know it',
    });
  });
});
