import { type Secret } from '../../config/secret.js';
import { explainFault, type ExplainedFault, type FaultPlace } from '../../exchange/explain-fault.js';
import { failed, type Finding } from './check.js';

/** A server that the doctor connects to, and the option that sets its address. */
export interface ServerPlace extends FaultPlace {
  host: string;
  port: number;
  proxy?: Secret;
}

/** Explains a fault with the same words as the error of a call. */
export function explainHandshakeFault(place: ServerPlace, fault: ExplainedFault): Finding {
  const where = `${place.host}, port ${place.port}`;
  const { message, hint = 'Run the check again.' } = explainFault(where, fault, place);
  return failed(message, hint);
}
