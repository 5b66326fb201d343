import { Injectable } from '@nestjs/common';
import {
  BanksService,
  CustomersService,
  InjectService,
  LinkSdkService,
  ServiceAuthService,
  ServiceHttpService,
} from 'nestjs-service';

/** Injected by the types of its constructor alone, as hosts do, and by name for the second service. */
@Injectable()
export class BankingService {
  constructor(
    readonly customers: CustomersService,
    readonly banks: BanksService,
    readonly sdk: LinkSdkService,
    readonly auth: ServiceAuthService,
    readonly http: ServiceHttpService,
    @InjectService(BanksService, 'ksa') readonly ksaBanks: BanksService,
    @InjectService(ServiceAuthService, 'ksa') readonly ksaAuth: ServiceAuthService,
  ) {
    http.axiosRef.interceptors.request.use((config) => {
      config.headers.set('x-host', 'consumer');
      return config;
    });
  }

  /** Its type comes from `parse`: the compiler of each host reads the types of the packed package. */
  bankNames(): Promise<string[]> {
    return this.banks.list({ parse: (body) => (body as { name: string }[]).map(({ name }) => name) });
  }
}
