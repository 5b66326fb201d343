// The DTOs in the host's Swagger document.
import assert from 'node:assert/strict';
import { Body, Controller, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { ConnectDto, CreateCustomerDto } from 'nestjs-service';

class HostController {
  create() {}
  connect() {}
}
class HostModule {}
Controller()(HostController);
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
const { components } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
const fields = (name) => Object.keys(components.schemas[name].properties).sort();
assert.deepEqual(fields('CreateCustomerDto'), ['app_user_id']);
assert.deepEqual(fields('ConnectDto'), ['bank_identifier', 'customer_id', 'permissions']);
await app.close();
