import { type DescribeOption, ServiceError } from '../../errors/index.js';
import { type Call } from '../../http/call.js';

/** The call that an error is about. Left out: that of the double which throws it, and GET /banks/v1 before that. */
export interface FailingCall {
  method?: string;
  path?: string;
  /** Its key (`http.idempotencyHeader`): the error has it where the call may have been carried out. */
  idempotencyKey?: string;
}

export type CallFacts = Pick<Call, 'method' | 'url'> & Partial<Pick<Call, 'idempotencyKey'>>;

/** Makes an error for a call, with the options named as its client sets them. */
type Make<E> = (call: CallFacts, describeOption: DescribeOption) => E;

/** On an error of `serviceErrors`: makes it for the double that throws it. */
const REMAKE = Symbol('nestjs-service:remake');

/** An error about that call, or about the one of the double that throws it. */
export function aboutCall<E extends ServiceError>(
  { method, path, idempotencyKey }: FailingCall,
  make: Make<E>,
): E {
  const own = method === undefined && path === undefined ? undefined : factsOf(method, path);
  const makeFor: Make<E> = (call, describeOption) =>
    make({ ...(own ?? call), idempotencyKey }, describeOption);
  const error = makeFor(factsOf(), (option) => option);
  return Object.defineProperty(error, REMAKE, { value: makeFor });
}

/** What a double throws: what depends on the call and the module is filled in. */
export function completeError(
  error: unknown,
  describeOption: DescribeOption,
  call: CallFacts = factsOf(),
): unknown {
  const remake =
    error instanceof ServiceError ? (error as { [REMAKE]?: Make<ServiceError> })[REMAKE] : undefined;
  if (!remake) return error;
  const made = remake(call, describeOption);
  const [, frames] = splitStack(error as ServiceError);
  const stack = { value: splitStack(made)[0] + frames, writable: true, configurable: true };
  Object.assign(error as ServiceError, { hint: undefined, options: undefined });
  return Object.defineProperties(error, { ...Object.getOwnPropertyDescriptors(made), stack });
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
