import { ServiceError } from '../../errors/index.js';
import { type Call } from '../../http/call.js';

/** The call that an error is about. Left out: that of the double which throws it, and GET /banks/v1 before that. */
export interface FailingCall {
  method?: string;
  path?: string;
  /** Its key (`http.idempotencyHeader`): the error has it where the call may have been carried out. */
  idempotencyKey?: string;
}

export type CallFacts = Pick<Call, 'method' | 'url'> & Partial<Pick<Call, 'idempotencyKey'>>;

/** On an error that names no call of its own: makes it for the call of the double that throws it. */
const REMAKE = Symbol('nestjs-service:remake');

/** An error about that call, or about the one of the double that throws it. */
export function aboutCall<E extends ServiceError>(
  { method, path, idempotencyKey }: FailingCall,
  make: (call: CallFacts) => E,
): E {
  const makeFor = (call: CallFacts): E => make({ ...call, idempotencyKey });
  const error = makeFor(factsOf(method, path));
  if (method === undefined && path === undefined) Object.defineProperty(error, REMAKE, { value: makeFor });
  return error;
}

/** What a double throws, for this call: what depends on method and path is filled in. */
export function completeError(error: unknown, call: CallFacts): unknown {
  const remake =
    error instanceof ServiceError
      ? (error as { [REMAKE]?: (call: CallFacts) => ServiceError })[REMAKE]
      : undefined;
  if (!remake) return error;
  const made = remake(call);
  const [, frames] = splitStack(error as ServiceError);
  const values = { message: made.message, stack: splitStack(made)[0] + frames };
  for (const [key, value] of Object.entries(values)) {
    Object.defineProperty(error, key, { value, writable: true, configurable: true });
  }
  return Object.assign(error as ServiceError, { hint: undefined, options: undefined }, made);
}

/** What it says, and where it came from. */
function splitStack({ stack = '' }: Error): [string, string] {
  const at = /\n {4}at /.exec(stack)?.index ?? stack.length;
  return [stack.slice(0, at), stack.slice(at)];
}

function factsOf(method = 'GET', path = '/banks/v1'): CallFacts {
  return {
    method: method.toUpperCase(),
    url: new URL(path, 'https://service.invalid'),
  };
}
