import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Controller, Module, Post, Req } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { ServiceExceptionFilter, ServiceHttpService, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { type INestApplication } from '@nestjs/common';

@Controller()
class UploadController {
  constructor(private readonly http: ServiceHttpService) {}

  @Post('upload')
  upload(@Req() inbound: IncomingMessage): Promise<unknown> {
    return this.http.post('/documents/v1', inbound, { headers: { 'content-type': 'application/pdf' } });
  }

  @Post('upload-by-axios')
  async uploadByAxios(@Req() inbound: IncomingMessage): Promise<unknown> {
    return (await this.http.axiosRef.post<unknown>('/documents/v1', inbound)).data;
  }
}

let simulator: ServiceSimulator;
let app: INestApplication;
beforeAll(async () => {
  simulator = await ServiceSimulator.start();
  @Module({
    imports: [ServiceModule.forRoot(simulator.moduleOptions({ authentication: 'mtls' }))],
    controllers: [UploadController],
  })
  class Host {}
  const testing = await Test.createTestingModule({ imports: [Host] }).compile();
  app = testing.createNestApplication({ logger: false });
  app.useGlobalFilters(new ServiceExceptionFilter());
  await app.listen(0, '127.0.0.1');
});
afterAll(async () => {
  await app.close();
  await simulator.stop();
});

it.each(['upload', 'upload-by-axios'])(
  'a controller that forwards its inbound request (%s): the client gets a 400, over a connection that goes on',
  async (path) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const url = `${await app.getUrl()}/${path}`;
    const upload = () =>
      new Promise<{ status?: number; body: string; reused: boolean; port?: number }>((resolve, reject) => {
        const headers = { 'content-type': 'application/pdf' };
        const outgoing = httpRequest(url, { method: 'POST', agent, headers }, (response) => {
          const port = response.socket.localPort;
          let body = '';
          response.setEncoding('utf8').on('data', (text: string) => (body += text));
          response.on('end', () =>
            resolve({ status: response.statusCode, body, reused: outgoing.reusedSocket, port }),
          );
          response.on('error', reject);
        });
        outgoing.on('error', reject).end(Buffer.alloc(200_000, 'x'));
      });
    const first = await upload();
    expect(first).toMatchObject({ status: 400, body: expect.stringContaining('invalid_request') });
    expect(await upload()).toMatchObject({ status: 400, reused: true, port: first.port });
    expect(simulator.apiRequests).toHaveLength(0);
    agent.destroy();
  },
);
