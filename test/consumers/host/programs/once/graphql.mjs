// ServiceExceptionFilter as the global filter of a GraphQL application.
import { ConflictException, HttpException, Inject, Module } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { Field, GraphQLModule, Mutation, ObjectType, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { MercuriusDriver } from '@nestjs/mercurius';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { GraphQLError } from 'graphql';
import { BanksService, CustomersService, ServiceExceptionFilter, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';

class Bank {}
class BankResolver {
  constructor(banks, customers) {
    Object.assign(this, { service: banks, customers });
  }
  banks() {
    return this.service.list();
  }
  async register() {
    return (await this.customers.create({ app_user_id: 'u-1' })).app_user_id;
  }
  partners() {
    return this.register();
  }
  taken() {
    throw new ConflictException('said by the host');
  }
  own() {
    throw new GraphQLError('of the host', { extensions: { code: 'HOST', detail: 1 } });
  }
}
class HostModule {}

const text = () => String;
const decorate = (decorator, { prototype }, method) =>
  decorator(prototype, method, Object.getOwnPropertyDescriptor(prototype, method));
ObjectType()(Bank);
Field(text)(Bank.prototype, 'name');
Resolver(() => Bank)(BankResolver);
Inject(BanksService)(BankResolver, undefined, 0);
Inject(CustomersService)(BankResolver, undefined, 1);
decorate(
  Query(() => [Bank]),
  BankResolver,
  'banks',
);
decorate(Mutation(text), BankResolver, 'register');
decorate(ResolveField(text, { nullable: true }), BankResolver, 'partners');
for (const method of ['taken', 'own']) decorate(Query(text, { nullable: true }), BankResolver, method);

/** As many hosts have it: only what is meant for callers is shown. */
let mask = false;
const masked = (error) =>
  error.originalError instanceof HttpException ? error : new GraphQLError('Internal server error');
const errorFormatter = ({ data, errors }) => ({
  statusCode: 200,
  response: { data, errors: errors.map((error) => (mask ? masked(error) : error).toJSON()) },
});

const simulator = await ServiceSimulator.start();
Module({
  imports: [
    ServiceModule.forRoot(simulator.moduleOptions({ environment: 'production', authentication: 'mtls' })),
    GraphQLModule.forRoot({
      driver: MercuriusDriver,
      autoSchemaFile: true,
      errorFormatter,
      fieldResolverEnhancers: ['filters'],
    }),
  ],
  providers: [BankResolver, { provide: APP_FILTER, useClass: ServiceExceptionFilter }],
})(HostModule);

const app = await NestFactory.create(HostModule, new FastifyAdapter(), { logger: false });
await app.listen(0, '127.0.0.1');
const url = `${await app.getUrl()}/graphql`;

/** The answer as text: nothing of it may show what the service said to us. */
async function ask(query) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) });
  const answer = await response.text();
  assert.doesNotMatch(answer, /secret|banks\/v1|SERVICE_|correlation|filter\.js/);
  return { status: response.status, ...JSON.parse(answer) };
}
const refuse = (path, status, message) =>
  simulator.fail({ path, times: 1, fault: { status, json: { status, message } } });

const { data } = await ask('{ banks { name } }');
assert.ok(data.banks.length > 0);

refuse('/banks/v1', 403, 'secret reason');
const refused = await ask('{ banks { name } }');
assert.deepEqual(refused, {
  status: 200,
  data: null,
  errors: [
    {
      message: 'The service failed to answer this call.',
      locations: [{ line: 1, column: 3 }],
      path: ['banks'],
      extensions: { code: 'api_error', statusCode: 502 },
    },
  ],
});

refuse('/customers/v1', 409, 'exists already');
const [exists] = (await ask('mutation { register }')).errors;
assert.equal(exists.message, 'exists already');
assert.deepEqual(exists.extensions, { code: 'api_error', statusCode: 409 });

// A formatter that shows HttpExceptions alone shows this one.
mask = true;
refuse('/customers/v1', 409, 'exists already');
assert.equal((await ask('mutation { register }')).errors[0].message, 'exists already');
assert.equal((await ask('{ own }')).errors[0].message, 'Internal server error');
mask = false;

// A field that fails takes nothing else with it.
simulator.fail({ path: '/customers/v1', times: 99, fault: { status: 401, json: { message: 'secret' } } });
const partial = await ask('{ banks { name partners } }');
simulator.clearFaults();
assert.equal(partial.data.banks[0].name, data.banks[0].name);
assert.equal(partial.data.banks[0].partners, null);
assert.equal(partial.errors[0].path.join('.'), 'banks.0.partners');
assert.deepEqual(partial.errors[0].extensions, refused.errors[0].extensions);

// The host's own errors are the host's.
assert.equal((await ask('{ taken }')).errors[0].message, 'said by the host');
assert.deepEqual((await ask('{ own }')).errors[0].extensions, { code: 'HOST', detail: 1 });

assert.equal((await ask('mutation { register }')).data.register, 'u-1');
await app.close();
await simulator.stop();
