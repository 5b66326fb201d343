import { type ServiceCallEvent } from 'nestjs-service';
import { type RecordedRequest } from 'nestjs-service/testing';
import { type PlannedCall } from './plan.js';

/** How a call ended. `late`: not within its time limit. */
export type Outcome = { value: unknown } | { error: unknown } | 'late';

/** A call of a history. */
export interface PlayedCall extends PlannedCall {
  /** The id of the call, which is sent as its correlation id. */
  id: string;
  signal?: AbortSignal;
  /** The subject of the client certificate that was in use when the call began. */
  certificate?: string;
  outcome?: Outcome;
  /** The requests of the call that arrived at the service. */
  arrived: RecordedRequest[];
  /** The events that `http.onCall` got for this call. */
  events: ServiceCallEvent[];
}
