import { type RecordedRequest } from 'nestjs-service/testing';
import { type ClientName, clientOf, type ServiceName, SERVICES } from './clients.js';
import { SECRET } from './faults.js';
import { type PlayedCall } from './played-call.js';
import { type World } from './world.js';

const CUSTOMER_SCOPES = /^(api|customer\.c-[1-4])$/;
/** The service at which the calls of a client arrive. */
const FACES = { acme: 'oauth-base', vault: 'base', bolt: 'oauth-base', box: 'sandbox' } as const;

/** The scope of a token that the service has issued; `undefined` for any other token. */
export function subjectOf(world: World, service: ServiceName, token: unknown): string {
  const subject = world.services[service].issuedFor(String(token));
  return `${subject?.scope} in ${subject?.environment}`;
}

/** The faults in the headers of a call. Exactly one header must contain a secret: that of the client itself. */
export function wrongHeaders(
  world: World,
  client: ClientName,
  headers: readonly (readonly [name: string, value: string])[],
): string[] {
  const { service, mode } = clientOf(client);
  const { appToken } = world.services[service];
  const secret = headers.filter(([name, value]) => SECRET.test(value) || /^authorization$/i.test(name));
  if (secret.length !== 1) return [`has ${secret.length} headers with secrets: ${secret.join(' ')}`];
  const [[name, value]] = secret;
  if (mode.authentication !== 'oauth') {
    const { appTokenHeader } = SERVICES[service];
    return name.toLowerCase() === appTokenHeader && value === appToken ? [] : [`has ${name}: ${value}`];
  }
  const subject = subjectOf(world, service, value.replace('Bearer ', ''));
  return name.toLowerCase() === 'authorization' && subject === 'api in production'
    ? []
    : [`has the token of ${subject} in ${name}`];
}

/** The faults in one request that arrived at a service. */
export function wrongRequest(
  world: World,
  service: ServiceName,
  record: RecordedRequest,
  calls: ReadonlyMap<string, PlayedCall>,
): string[] {
  if (record.face === 'token') return wrongTokenRequest(world, service, record);
  const session = calls.get(record.headers['x-session'] ?? '');
  if (session) return wrongSession(world, session, record);
  const call = calls.get(record.headers['x-correlation-id'] ?? '');
  if (!call) return ['is of no call'];
  const faults = wrongHeaders(world, call.client, pairsOf(record));
  if (clientOf(call.client).service !== service) faults.push(`arrived at ${service}`);
  if (record.face !== FACES[call.client]) faults.push(`arrived at ${record.face}`);
  if (SECRET.test(record.path + record.body)) faults.push('has a secret in its path or body');
  if (call.abort === -1) faults.push('was aborted before');
  return [...faults, ...wrongCertificate(record, FACES[call.client], call)];
}

/** A client must present its own certificate, and none that was replaced before the call began. */
function wrongCertificate(
  { certificateSubject: subject }: RecordedRequest,
  face: string,
  { client, certificate }: PlayedCall,
): string[] {
  if (client === 'acme' || client === 'box')
    return subject === undefined ? [] : [`shows ${subject} at ${face}`];
  const [, owner, number] = /^CN=(\w+)-(\d+)$/.exec(subject ?? '') ?? [];
  const [, , oldest] = /^CN=(\w+)-(\d+)$/.exec(certificate ?? '') ?? [];
  return owner === client && Number(number) >= Number(oldest) ? [] : [`shows ${subject}, not ${certificate}`];
}

/** A token request must contain the client's own id and secret (perhaps a replaced one), and no other secret. */
function wrongTokenRequest(world: World, service: ServiceName, record: RecordedRequest): string[] {
  const { form = {}, environment, certificateSubject: subject } = record;
  const { client_secret = '', ...others } = form;
  const faults: string[] = [];
  if (form.client_id !== world.services[service].clientId) faults.push('has the id of another');
  if (!world.secrets[service].includes(client_secret)) faults.push('has the secret of another');
  if (!CUSTOMER_SCOPES.test(form.scope ?? '')) faults.push(`asks for ${form.scope}`);
  if (SECRET.test(JSON.stringify([others, record.rawHeaders, record.path])))
    faults.push('has another secret');
  const isBound = service === 'bolt' && environment === 'production';
  if (isBound !== (subject?.startsWith('CN=bolt-') ?? false)) faults.push(`shows ${subject}`);
  return faults;
}

/** A browser must send the token of the customer to whom the session belongs. */
function wrongSession(world: World, call: PlayedCall, { json, environment }: RecordedRequest): string[] {
  const { customer_id, access_token, app_token } = json as Record<string, unknown>;
  const { service } = clientOf(call.client);
  const subject = subjectOf(world, service, access_token);
  const { appToken } = world.services[service];
  const own = [call.customer, `customer.${call.customer} in ${environment}`, appToken];
  return String([customer_id, subject, app_token]) === String(own)
    ? []
    : [`of ${call.customer} has the token of ${subject}`];
}

function pairsOf({ rawHeaders }: RecordedRequest): [string, string][] {
  return rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1]] as [string, string]] : [],
  );
}
