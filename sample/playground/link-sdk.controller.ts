import { BadGatewayException, Body, Controller, Get, Header, Inject, Post, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import axios, { type AxiosError, type Method } from 'axios';
import { type ServerResponse } from 'node:http';
import { PAGE_SERVICES, type PageServices } from '../page/services-in-use.js';

/** Passes the SDK of the simulator on, as a browser does not trust the simulator's certificate. */
@ApiExcludeController()
@Controller()
export class LinkSdkController {
  constructor(@Inject(PAGE_SERVICES) private readonly services: PageServices) {}

  @Get('link-sdk.js')
  @Header('Content-Type', 'text/javascript; charset=utf-8')
  script(@Res({ passthrough: true }) response: ServerResponse): Promise<string> {
    return this.#passOn(response, 'GET', '/link-sdk.js');
  }

  @Post('link-sdk/sessions')
  @Header('Content-Type', 'application/json')
  openSession(
    @Body() parameters: Record<string, unknown>,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<string> {
    return this.#passOn(response, 'POST', '/link-sdk/sessions', parameters);
  }

  async #passOn(response: ServerResponse, method: Method, path: string, data?: unknown): Promise<string> {
    const { auth, baseUrl } = this.services.current;
    const request = axios.request<string>({
      method,
      url: baseUrl + path,
      data,
      httpsAgent: auth.httpsAgent,
      proxy: false,
      timeout: 5_000,
      maxRedirects: 0,
      responseType: 'text',
      validateStatus: () => true,
    });
    const { status, data: body } = await request.catch(({ code }: AxiosError) => {
      // The error itself holds the request, with the customer's token.
      throw new BadGatewayException(`The service could not be reached (${code}).`);
    });
    response.statusCode = status;
    return body;
  }
}
