import {
  type BanksService,
  type CustomersService,
  type LinkSdkService,
  type ServiceAuthService,
  type ServiceCallEvent,
  type ServiceHttpService,
} from 'nestjs-service';
import { type Observable } from 'rxjs';

/** The providers of one ServiceModule, and the mode that it runs in. */
export interface ServicesInUse {
  environment: string;
  authentication: string;
  auth: ServiceAuthService;
  banks: BanksService;
  customers: CustomersService;
  http: ServiceHttpService;
  sdk: LinkSdkService;
  /** The address of the API. */
  baseUrl: string;
  /** Describes the simulator at that address. Absent for a real service. */
  simulator?: string;
}

/** The mode in which a call was made and, if known, what authenticated it. It contains nothing secret. */
export interface CallContext {
  mode: string;
  credentials?: readonly string[];
}

/** The modes and faults that the page offers. */
export interface PageChoices {
  modes: readonly Choice[];
  /** The name of the mode in use. */
  mode?: string;
  faults: readonly FaultChoice[];
}

interface Choice {
  name: string;
  title: string;
}

interface FaultChoice extends Choice {
  /** Why the fault cannot happen in the current mode. Absent if it can. */
  impossible?: string;
}

/** The services that the page uses: those of the application, or those of the playground. */
export interface PageServices {
  readonly current: ServicesInUse;
  /** Empty with a real service. */
  readonly choices: PageChoices;
  /** Emits when the mode has changed. */
  readonly switched: Observable<unknown>;
  /** Called when the call has ended. */
  contextOf(call: ServiceCallEvent): CallContext;
}

export const PAGE_SERVICES = Symbol('PAGE_SERVICES');
