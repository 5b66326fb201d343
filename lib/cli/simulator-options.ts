import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { type SimulatorRoutes } from '../testing/answer-book.js';
import { type FaultRule, isConnectionFault, NAMED_FAULTS, type SimulatorFault } from '../testing/faults.js';
import { FACES } from '../testing/request-log.js';
import { TLS_ALERTS, type TlsAlert } from '../testing/servers/client-certificate.js';
import { serverNamesOf } from '../testing/simulated-service.js';
import { type ServiceSimulator } from '../testing/simulator.js';
import { type SimulatorAddress } from '../testing/simulator.options.js';
import { DEFAULT_DIR, rejectWindowsPath, UsageError } from './command.js';
import { folderFault } from './simulator-files.js';

export type SimulatorCommandOptions = Exclude<Awaited<ReturnType<typeof readSimulatorOptions>>, 'help'>;

/** The addresses in the order of their ports: the first has the base port. */
export const ADDRESSES: readonly SimulatorAddress[] = [
  'baseUrl',
  'oauthBaseUrl',
  'sandboxUrl',
  'sandboxMtlsUrl',
  'authUrl',
  'sandboxAuthUrl',
];

const DEFAULT_PORT = 8443;
const MAX_PORT = 65_535;

/** The words for faults in --fail. Those in `connection` affect a server's connections, so they cannot be given for a path. */
export const FAULT_WORDS = {
  named: NAMED_FAULTS,
  connection: ['reset-handshake', ...Object.keys(TLS_ALERTS)],
} as const;

export const SIMULATOR_HELP = `Usage: nestjs-service simulator [options]

Runs a simulated service over real TLS until SIGINT (Ctrl+C) or SIGTERM. It listens on 127.0.0.1 by default.

Options:
  --port <number>             the base port. The six addresses use it and the next five ports, in this order: base, OAuth
                              base, sandbox, sandbox with mTLS, token endpoint, sandbox token endpoint. 0: free ports.
                              Default: ${DEFAULT_PORT}
  --host <address>            the IP address to listen on. For other hosts and containers: 0.0.0.0. Default: 127.0.0.1
  --san <name>                a further host name in the server certificate, for example the service's name in a compose
                              file. The first one becomes the host in .env. May be repeated
  --dir <folder>              where the certificates and a ready .env are written. Default: ${DEFAULT_DIR}
  --name <name>               write the variables of the module with this name: SERVICE_<NAME>_*
  --new                       create new certificates and credentials instead of those of the last start
  --token-lifetime <seconds>  the lifetime of access tokens. Default: 3600
  --routes <file>             answer further paths as this file says: JSON, or a module with a default export:
                              { "GET /accounts/v1/{id}": { "status": 200, "json": { "id": "a-1" }, "headers": {} } }
  --fail <where>=<fault>[:<times>]
                              make calls fail, for example '/banks/v1=503:3', '/oauth2/token=2000ms' or 'base=unknown_ca'.
                              <where> is a path, or a server: ${FACES.join(', ')}.
                              <fault> is a status from 400 to 599, a delay in ms, or one of:
                              ${FAULT_WORDS.named.join(', ')}.
                              For a server also one of these, with which new connections fail:
                              ${FAULT_WORDS.connection.slice(0, 5).join(', ')},
                              ${FAULT_WORDS.connection.slice(5).join(', ')}.
                              Without <times>, every call fails. May be repeated
  --verbose                   also print the headers and the body of each request. Credentials are cut
  --help                      show this text

Variables, read from the environment or from .env in the working directory (with --name: SERVICE_<NAME>_*):
  SERVICE_APP_TOKEN_HEADER    the header of the app token. Default: service-app-token
  SERVICE_WEBHOOK_HEADER      the header of webhook signatures. Default: service-signature
  SERVICE_WEBHOOK_ALGORITHM, SERVICE_WEBHOOK_PREFIX
                              the form of webhook signatures. Default: sha512, sha512=

Exit codes: 0 after SIGINT or SIGTERM; 1 the simulator cannot start; 2 wrong usage
`;

/** @throws UsageError, or an error of `parseArgs` */
export async function readSimulatorOptions(args: string[], cwd: string) {
  const { values } = parseArgs({
    args,
    options: {
      port: { type: 'string', default: String(DEFAULT_PORT) },
      host: { type: 'string' },
      san: { type: 'string', multiple: true, default: [] },
      dir: { type: 'string', default: DEFAULT_DIR },
      name: { type: 'string' },
      new: { type: 'boolean', default: false },
      'token-lifetime': { type: 'string' },
      routes: { type: 'string' },
      fail: { type: 'string', multiple: true },
      verbose: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return 'help' as const;
  const { host, san: serverNames } = values;
  try {
    serverNamesOf({ host, serverNames });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  if (values.dir === '') throw new UsageError('--dir needs the name of a folder.');
  const folder = resolve(cwd, values.dir);
  const fault = folderFault(folder);
  if (fault !== undefined) throw new UsageError(`--dir: ${fault} Choose another folder.`);
  const { name } = values;
  // Loaded only with --name, because it brings the table of options and so class-validator.
  if (name !== undefined) (await import('./host-configuration.js')).checkName(name);
  const lifetime = values['token-lifetime'];
  const port = parseInteger('--port', values.port, 0, MAX_PORT - ADDRESSES.length + 1);
  return {
    ports: port === 0 ? undefined : portsFrom(port),
    host,
    serverNames,
    folder,
    name,
    isNew: values.new,
    isVerbose: values.verbose,
    tokenLifetime:
      lifetime === undefined ? undefined : parseInteger('--token-lifetime', lifetime, 1, 2 ** 31),
    routes: values.routes === undefined ? {} : await readRoutes(cwd, values.routes),
    faults: (values.fail ?? []).map(parseFault),
  };
}

function portsFrom(base: number): Record<SimulatorAddress, number> {
  const entries = ADDRESSES.map((address, index) => [address, base + index]);
  return Object.fromEntries(entries) as Record<SimulatorAddress, number>;
}

function parseInteger(option: string, text: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${option} must be a whole number from ${min} to ${max}, not '${text}'.`);
}

/** Parses the value of --fail, for example `/banks/v1=503:3`. @throws UsageError */
export function parseFault(text: string): FaultRule {
  const usageError = (reason: string) => new UsageError(`--fail '${text}': ${reason}`);
  const parts = /^([^=]+)=([^:]*)(?::([1-9]\d*))?$/.exec(text);
  if (!parts) throw usageError("must be <where>=<fault>[:<times>], for example '/banks/v1=503:3'.");
  const [, where, word, count] = parts;
  rejectWindowsPath(where);
  const face = FACES.find((each) => each === where);
  if (face === undefined && !/^\/[^?#]*$/.test(where))
    throw usageError(`'${where}' is neither a path nor a server.`);
  const fault = parseFaultWord(word);
  if (!fault) {
    const words = Object.values(FAULT_WORDS).flat().join(', ');
    throw usageError(
      `'${word}' is not a fault. A fault is a status from 400 to 599, a delay such as 2000ms, ${words}.`,
    );
  }
  if (face === undefined && isConnectionFault(fault)) {
    throw usageError(`'${word}' affects whole connections: give a server instead of a path.`);
  }
  const times = count === undefined ? Infinity : Number(count);
  return { ...(face ? { face } : { path: where }), times, fault };
}

function parseFaultWord(word: string): SimulatorFault | undefined {
  if (/^[45]\d\d$/.test(word)) {
    const json = { status: `SIMULATED_${word}`, message: 'This failure was injected with --fail' };
    return { status: Number(word), json };
  }
  const delay = /^(\d{1,9})ms$/.exec(word)?.[1];
  if (delay !== undefined) return { delayMs: Number(delay) };
  if (word === 'reset-handshake') return word;
  if (Object.hasOwn(TLS_ALERTS, word)) return { tlsAlert: word as TlsAlert };
  return NAMED_FAULTS.find((name) => name === word);
}

const FORM = `The object has an answer for each method and path, for example { "GET /accounts/v1/{id}": { "json": { "id": "a-1" } } }.`;

/**
 * Reads the routes of --routes from a JSON file, or from the default export of a module.
 *
 * @throws UsageError if the file cannot be read or run, or contains something else
 */
async function readRoutes(cwd: string, file: string): Promise<SimulatorRoutes> {
  const path = resolve(cwd, file);
  try {
    const found: unknown = path.endsWith('.json')
      ? JSON.parse(await readFile(path, 'utf8'))
      : ((await import(pathToFileURL(path).href)) as { default?: unknown }).default;
    if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found as SimulatorRoutes;
  } catch (error) {
    throw new UsageError(`--routes: ${file} cannot be read: ${(error as Error).message}`);
  }
  throw new UsageError(`--routes: ${file} must contain an object (a module: as its default export). ${FORM}`);
}

/** @throws UsageError for an invalid route */
export function addRoutes(simulator: ServiceSimulator, routes: SimulatorRoutes): void {
  try {
    simulator.answer(routes);
  } catch (error) {
    const reason = (error as Error).message.replace(/^.*?\(\): /, '');
    throw new UsageError(`--routes: ${reason} ${FORM}`);
  }
}
