import { Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import {
  BanksService,
  CustomersService,
  LinkSdkService,
  ServiceAuthService,
  serviceConfig,
  ServiceHttpService,
} from 'nestjs-service';
import { NEVER } from 'rxjs';
import { type CallContext, type PageServices, type ServicesInUse } from './services-in-use.js';

/** Lets the page use the services of the application, which is configured for a real service. */
@Injectable()
export class HostServices implements PageServices {
  readonly choices = { modes: [], faults: [] };
  readonly switched = NEVER;

  constructor(private readonly modules: ModuleRef) {}

  get current(): ServicesInUse {
    const auth = this.modules.get(ServiceAuthService, { strict: false });
    return {
      ...describeTarget(auth.certificate !== undefined),
      auth,
      banks: this.modules.get(BanksService, { strict: false }),
      customers: this.modules.get(CustomersService, { strict: false }),
      http: this.modules.get(ServiceHttpService, { strict: false }),
      sdk: this.modules.get(LinkSdkService, { strict: false }),
    };
  }

  contextOf(): CallContext {
    const { environment, authentication } = this.current;
    return { mode: `${environment}, ${authentication}` };
  }
}

function describeTarget(
  hasCertificate: boolean,
): Pick<ServicesInUse, 'environment' | 'authentication' | 'baseUrl'> {
  const { environment = 'sandbox', authentication, urls = {} } = serviceConfig();
  const isProduction = environment === 'production';
  const mode = authentication ?? (isProduction ? 'mtls' : 'app-token');
  const production = mode === 'oauth' ? (urls.oauthBaseUrl ?? urls.baseUrl) : urls.baseUrl;
  const isMutual = mode === 'mtls' || (mode === 'oauth' && hasCertificate);
  const sandbox = isMutual ? urls.sandboxMtlsUrl : urls.sandboxUrl;
  return { environment, authentication: mode, baseUrl: (isProduction ? production : sandbox) ?? '' };
}
