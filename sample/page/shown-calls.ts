import { Inject, Injectable } from '@nestjs/common';
import { type ServiceCallEvent } from 'nestjs-service';
import { map, ReplaySubject } from 'rxjs';
import { CallLog } from '../calls/call-log.js';
import { PAGE_SERVICES, type CallContext, type PageServices } from './services-in-use.js';

const MAX_CALLS = 20;

/** One call of the service, or one token request, including its retries. */
interface ShownCall extends CallContext {
  method: string;
  path: string;
  /** The HTTP status, or the code of the error. */
  status: string;
  attempts: number;
  durationMs: number;
  failed: boolean;
}

/** Replays the last calls to each new subscriber, then emits new ones. */
@Injectable()
export class ShownCalls extends ReplaySubject<ShownCall> {
  constructor(log: CallLog, @Inject(PAGE_SERVICES) services: PageServices) {
    super(MAX_CALLS);
    log.calls.pipe(map((call) => describeCall(call, services.contextOf(call)))).subscribe(this);
  }
}

function describeCall(call: ServiceCallEvent, context: CallContext): ShownCall {
  const { method, route, status, error, attempts, durationMs } = call;
  return {
    ...context,
    method,
    path: route,
    status: String(status ?? error),
    attempts,
    durationMs: Math.round(durationMs),
    failed: error !== undefined,
  };
}
