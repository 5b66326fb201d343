import { type ServiceCallEvent } from 'nestjs-service';
import { type RecordedRequest, type ServiceSimulator } from 'nestjs-service/testing';

/** Finds the request of a call among those that a simulator has recorded. */
export class Arrivals {
  readonly #found = new WeakSet<RecordedRequest>();

  /** Its last attempt, once the call has ended; undefined if none arrived. */
  of(
    { kind, status, requestId }: ServiceCallEvent,
    { apiRequests, tokenRequests }: ServiceSimulator,
  ): RecordedRequest | undefined {
    if (kind === 'api')
      return apiRequests.findLast(({ headers }) => headers['x-correlation-id'] === requestId);
    if (status === undefined) return undefined;
    // A token request has no id of its call; they are answered in the order of their arrival.
    const request = tokenRequests.find((each) => each.status === status && !this.#found.has(each));
    if (request) this.#found.add(request);
    return request;
  }
}

/** What authenticated a request: names, schemes and lengths, and no character of a value. */
export function describeCredentials(request: RecordedRequest | undefined): string[] {
  if (!request) return ['nothing arrived at the simulator'];
  const { headers, form, certificateSubject } = request;
  const credentials = {
    'client certificate': certificateSubject,
    'service-app-token': lengthOf(headers['service-app-token']),
    Authorization: lengthOf(headers.authorization),
    client_secret: lengthOf(form?.client_secret),
    scope: form?.scope,
  };
  return Object.entries(credentials).flatMap(([name, value]) => (value ? [`${name}: ${value}`] : []));
}

function lengthOf(value: string | undefined): string | undefined {
  const [, scheme = '', secret] = /^(Bearer )?(.*)$/.exec(value ?? '') ?? [];
  return secret && `${scheme}${secret.length} characters`;
}
