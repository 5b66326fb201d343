// A host. Configured by SERVICE_* and SERVICE_KSA_* variables, told what to do over HTTP.
import { Controller, Get, Module, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  BanksService,
  getServiceToken,
  LinkSdkService,
  ServiceAuthService,
  ServiceExceptionFilter,
  ServiceHttpService,
  ServiceModule,
} from 'nestjs-service';

let app;
const CALLS = {
  banks: () => app.get(BanksService).list(),
  bearer: () => app.get(getServiceToken(BanksService, 'ksa'), { strict: false }).list(),
  session: () => app.get(LinkSdkService).connectParameters({ customer_id: 'c-1', permissions: ['identity'] }),
  late: () => app.get(ServiceHttpService).get('/late', { timeout: 500 }),
  change: () => app.get(ServiceHttpService).post('/change', {}, { timeout: 500 }),
  slow: () => app.get(ServiceHttpService).get('/slow'),
  big: () => app.get(ServiceHttpService).get('/big'),
  certificate: () => app.get(ServiceAuthService).certificate,
};

class HostController {
  call(name) {
    return CALLS[name]();
  }
}
Controller()(HostController);
Get(':name')(
  HostController.prototype,
  'call',
  Object.getOwnPropertyDescriptor(HostController.prototype, 'call'),
);
Param('name')(HostController.prototype, 'call', 0);

class HostModule {}
Module({
  imports: [ServiceModule.forRoot(), ServiceModule.forRoot({ name: 'ksa' })],
  controllers: [HostController],
})(HostModule);

app = await NestFactory.create(HostModule, { logger: ['log', 'warn', 'error'] });
app.enableShutdownHooks();
app.useGlobalFilters(new ServiceExceptionFilter());
await app.listen(0, '127.0.0.1');
console.log(`listening at ${await app.getUrl()} `);
