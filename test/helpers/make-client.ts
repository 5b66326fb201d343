import { type ServiceModuleOptions } from '../../lib/config/options.js';
import { resolveOptions } from '../../lib/config/resolve-options.js';
import { createClient, systemIo } from '../../lib/engine/create-client.js';
import { type ServiceIo } from '../../lib/exchange/io.js';
import { ClientIdentity, type Identity } from '../../lib/tls/client-identity.js';

/** Makes a client with these options, without Nest. `lines` has its log lines, each with its level. */
export async function makeClient(
  given: ServiceModuleOptions,
  {
    name,
    identity: changed = {},
    ...io
  }: Partial<ServiceIo> & { name?: string; identity?: Partial<Identity> } = {},
) {
  const { options, tls, faults } = await resolveOptions(given, name);
  if (!options) throw new Error(JSON.stringify(faults));
  const lines: string[] = [];
  const note = (level: string) => (line: string) => void lines.push(`${level}: ${line}`);
  const log = { debug: note('debug'), log: note('log'), warn: note('warn'), error: note('error') };
  const whole: ServiceIo = { ...systemIo(log), ...io };
  const opened = await ClientIdentity.open({
    tls,
    maxSockets: options.http.maxSockets,
    offerToTokenEndpoint: options.oauth?.mtls ?? false,
    clock: whole.clock,
    log,
  });
  if (!opened.identity) throw new Error(JSON.stringify(opened.faults));
  const identity = Object.assign(forwarding(opened.identity), changed);
  return { service: createClient(options, identity, whole), identity, options, lines };
}

/** The same identity, with properties that a test can set. */
function forwarding(identity: ClientIdentity): Identity {
  const target: Record<PropertyKey, unknown> = {};
  return new Proxy(target, {
    get: (_, key) => {
      if (Object.hasOwn(target, key)) return target[key];
      const value: unknown = Reflect.get(identity, key);
      return typeof value === 'function' ? (value.bind(identity) as unknown) : value;
    },
  }) as unknown as Identity;
}
