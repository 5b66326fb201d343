import { type ServiceCallEvent } from 'nestjs-service';
import { type RecordedRequest, type ServiceSimulator } from 'nestjs-service/testing';

/** Finds the recorded request of a call, to show what authenticated it. */
export class Arrivals {
  readonly #found = new WeakSet<RecordedRequest>();

  /** Returns the last attempt of a call that has ended. Undefined if no attempt arrived at the simulator. */
  of(
    { kind, status, requestId }: ServiceCallEvent,
    { apiRequests, tokenRequests }: ServiceSimulator,
  ): RecordedRequest | undefined {
    if (kind === 'api')
      return apiRequests.findLast(({ headers }) => headers['x-correlation-id'] === requestId);
    if (status === undefined) return undefined;
    // A token request has no correlation id. But token requests are answered in the order of their arrival.
    const request = tokenRequests.find((each) => each.status === status && !this.#found.has(each));
    if (request) this.#found.add(request);
    return request;
  }
}

/** Describes what authenticated a request: names, schemes and lengths, but no character of a secret. */
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
