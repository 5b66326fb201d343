// The DTOs in the host's Swagger document, and the answers of the exception filter.
import assert from 'node:assert/strict';
import { Body, Controller, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { ConnectDto, CreateCustomerDto } from 'nestjs-service';
import { ApiServiceErrors } from 'nestjs-service/swagger';

class HostController {
  create() {}
  connect() {}
}
class HostModule {}
Controller()(HostController);
ApiServiceErrors()(HostController);
for (const [method, dto] of [
  ['create', CreateCustomerDto],
  ['connect', ConnectDto],
]) {
  Post(method)(
    HostController.prototype,
    method,
    Object.getOwnPropertyDescriptor(HostController.prototype, method),
  );
  Body()(HostController.prototype, method, 0);
  Reflect.defineMetadata('design:paramtypes', [dto], HostController.prototype, method);
}
Module({ controllers: [HostController] })(HostModule);

const app = await NestFactory.create(HostModule, { logger: false });
const { components, paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
const fields = (name) => Object.keys(components.schemas[name].properties).sort();
assert.deepEqual(fields('CreateCustomerDto'), ['app_user_id']);
assert.deepEqual(fields('ConnectDto'), ['bank_identifier', 'customer_id', 'permissions']);
assert.deepEqual(fields('ServiceErrorAnswer'), ['code', 'message', 'statusCode']);
const answers = ['400', '404', '409', '422', '502', '503', '504'];
assert.deepEqual(Object.keys(paths['/create'].post.responses).sort(), ['201', ...answers]);
const refused = paths['/create'].post.responses['400'].content['application/json'].schema.oneOf;
assert.deepEqual(refused[0], { $ref: '#/components/schemas/ServiceErrorAnswer' });
assert.deepEqual(refused[1].required, ['statusCode', 'message', 'error']);
await app.close();
