import { type Secret } from '../../config/secret.js';
import { explainFault, type ExplainedFault, type FaultPlace } from '../../exchange/explain-fault.js';
import { failed, type Finding } from './check.js';

/** An address that a connection goes to, and where it is set. */
export interface Place extends FaultPlace {
  host: string;
  port: number;
  proxy?: Secret;
}

/** As the error of a call would say it. */
export function explained(place: Place, fault: ExplainedFault): Finding {
  const where = `${place.host}, port ${place.port}`;
  const { message, hint = 'Run the check again.' } = explainFault(where, fault, place);
  return failed(message, hint);
}
