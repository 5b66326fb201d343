import { type ServiceCallEvent } from 'nestjs-service';
import { type RecordedRequest } from 'nestjs-service/testing';
import { type PlannedCall } from './plan.js';

/** How a call ended; `late`: not within its time limit. */
export type Outcome = { value: unknown } | { error: unknown } | 'late';

/** A call of a history. */
export interface PlayedCall extends PlannedCall {
  /** It is sent as correlation id. */
  id: string;
  signal?: AbortSignal;
  /** The subject of the client certificate that was in use when it began. */
  certificate?: string;
  outcome?: Outcome;
  /** Its requests as they arrived. */
  arrived: RecordedRequest[];
  /** The events that `http.onCall` got for this call. */
  events: ServiceCallEvent[];
}
