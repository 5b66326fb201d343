import { type Secret } from '../../config/secret.js';
import { explainFault, type ExplainedFault, type FaultPlace } from '../../exchange/explain-fault.js';
import { failed, type Finding } from './check.js';

/** A server that the doctor connects to, and the option that sets its address. */
export interface ServerPlace extends FaultPlace {
  host: string;
  port: number;
  proxy?: Secret;
}

/** Explains a fault of the doctor, which only connects, with the same words as the error of a call. */
export function explainHandshakeFault(place: ServerPlace, fault: Omit<ExplainedFault, 'phase'>): Finding {
  const where = `${place.host}, port ${place.port}`;
  const { message, hint } = explainFault(where, { ...fault, phase: 'connecting' }, place);
  return failed(message, hint ?? 'Run the check again.');
}
