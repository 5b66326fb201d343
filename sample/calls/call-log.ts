import { Global, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { type ServiceCallEvent } from 'nestjs-service';
import { Subject } from 'rxjs';

/** Publishes the event of each call that has ended. `http.onCall` adds the events. */
@Injectable()
export class CallLog implements OnApplicationShutdown {
  readonly calls = new Subject<ServiceCallEvent>();

  readonly add = (call: ServiceCallEvent): void => this.calls.next(call);

  onApplicationShutdown(): void {
    this.calls.complete();
  }
}

/** Shared by all ServiceModules of the application. */
@Global()
@Module({ providers: [CallLog], exports: [CallLog] })
export class CallLogModule {}
