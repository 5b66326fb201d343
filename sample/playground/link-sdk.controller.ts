import { readFileSync } from 'node:fs';
import { Body, Controller, ForbiddenException, Get, Header, Post } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { type ConnectParameters } from 'nestjs-service';
import { Playground } from './playground.js';

/** A fake of the LinkSDK and of its requests to the service, which are not documented, so the simulator does not have them. */
@ApiExcludeController()
@Controller()
export class LinkSdkController {
  constructor(private readonly playground: Playground) {}

  @Get('link-sdk.js')
  @Header('Content-Type', 'text/javascript; charset=utf-8')
  script(): string {
    return readFileSync(new URL('./link-sdk.js', import.meta.url), 'utf8');
  }

  /** Checks the parameters of a session, and returns what the customer is asked for. */
  @Post('link-sdk/sessions')
  openSession(@Body() parameters: ConnectParameters): Pick<ConnectParameters, 'permissions'> {
    const refusal = this.#explainRefusal(parameters);
    if (refusal !== undefined) throw new ForbiddenException(refusal);
    const { customer_id, permissions, bank_identifier } = parameters;
    return { customer_id, permissions, ...(bank_identifier && { bank_identifier }) } as ConnectParameters;
  }

  #explainRefusal({ access_token, app_token, customer_id }: ConnectParameters): string | undefined {
    const { simulator, mode } = this.playground;
    if (app_token !== undefined && app_token !== simulator.appToken) return 'The app token is not valid.';
    if (access_token === undefined && mode.oauth === 'disabled') {
      return app_token === undefined ? 'app_token is missing.' : undefined;
    }
    if (access_token === undefined) {
      return app_token === undefined
        ? 'access_token is missing.'
        : 'OAuth is enabled for this application: a session needs an access token, not the app token alone.';
    }
    const issued = simulator.issuedFor(access_token);
    if (issued?.environment !== mode.environment) return 'The access token is not valid.';
    if (issued.expiresAt.getTime() <= Date.now()) return 'The access token has expired.';
    if (issued.scope === 'api') return 'The access token is for the API, and not for a customer.';
    return issued.scope === `customer.${customer_id}`
      ? undefined
      : 'The access token is for another customer.';
  }
}
