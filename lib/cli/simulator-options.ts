import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { spellingFault } from '../config/module-name.js';
import { type FaultRule, type AnswerFault } from '../testing/faults.js';
import { type SimulatorAddress } from '../testing/simulator.options.js';
import { UsageError } from './command.js';
import { folderFault } from './simulator-files.js';

export interface SimulatorCommandOptions {
  /** Undefined: free ones. */
  ports?: Record<SimulatorAddress, number>;
  /** An absolute path. */
  folder: string;
  /** Of the module that the variables are for. */
  name?: string;
  /** Whether certificates and credentials stay over a restart. */
  keep: boolean;
  tokenLifetime?: number;
  faults: FaultRule[];
}

/** The addresses in the order of their ports, from the base port on. */
export const ADDRESSES: readonly SimulatorAddress[] = [
  'baseUrl',
  'oauthBaseUrl',
  'sandboxUrl',
  'sandboxMtlsUrl',
  'authUrl',
  'sandboxAuthUrl',
];

const DEFAULT_PORT = 8443;
export const DEFAULT_DIR = 'service-simulator';
const MAX_PORT = 65_535;
const NAMED_FAULTS = [
  'reset',
  'reset-after-headers',
  'truncate',
  'hang',
  'html',
  'empty',
  'gzip-bomb',
] as const;

export const SIMULATOR_HELP = `Usage: nestjs-service simulator [options]

Runs the simulated service on 127.0.0.1 over real TLS, until SIGINT (Ctrl+C) or SIGTERM.

Options:
  --port <number>             base port; the six addresses use it and the next five, in this order: base, OAuth base,
                              sandbox, sandbox with mTLS, token endpoint, sandbox token endpoint. 0: free ports.
                              Default ${DEFAULT_PORT}
  --dir <folder>              where the certificates and a ready .env are written. Default ${DEFAULT_DIR}
  --name <name>               writes the variables of the module with this name: SERVICE_<NAME>_*
  --keep                      keeps certificates and credentials in the folder, and takes them again at the next start
  --token-lifetime <seconds>  how long access tokens live. Default 3600
  --fail <path>=<fault>[:<times>]
                              makes calls of a path fail, for example '/banks/v1=503:3' or '/oauth2/token=reset'.
                              A fault is a status from 400 to 599, or one of:
                              ${NAMED_FAULTS.join(', ')}.
                              Without <times>, all of them. May be given several times
  --help                      this text

Exit code: 0 after SIGINT or SIGTERM, 1 where it cannot start, 2 for options that it does not have.
`;

/** @throws UsageError, and what `parseArgs` throws */
export function readSimulatorOptions(args: string[]): SimulatorCommandOptions | 'help' {
  const { values } = parseArgs({
    args,
    options: {
      port: { type: 'string', default: String(DEFAULT_PORT) },
      dir: { type: 'string', default: DEFAULT_DIR },
      name: { type: 'string' },
      keep: { type: 'boolean', default: false },
      'token-lifetime': { type: 'string' },
      fail: { type: 'string', multiple: true },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return 'help';
  if (values.dir === '') throw new UsageError('--dir needs the name of a folder.');
  const folder = resolve(values.dir);
  const fault = folderFault(folder);
  if (fault !== undefined) throw new UsageError(`--dir: ${fault} Choose another folder.`);
  const { name } = values;
  const misspelt = name === undefined ? undefined : spellingFault(name);
  if (misspelt !== undefined) throw new UsageError(`--name: ${misspelt}`);
  const lifetime = values['token-lifetime'];
  const port = wholeNumber('--port', values.port, 0, MAX_PORT - ADDRESSES.length + 1);
  return {
    ports: port === 0 ? undefined : portsFrom(port),
    folder,
    name,
    keep: values.keep,
    tokenLifetime: lifetime === undefined ? undefined : wholeNumber('--token-lifetime', lifetime, 1, 2 ** 31),
    faults: (values.fail ?? []).map(readFault),
  };
}

function portsFrom(base: number): Record<SimulatorAddress, number> {
  const entries = ADDRESSES.map((address, index) => [address, base + index]);
  return Object.fromEntries(entries) as Record<SimulatorAddress, number>;
}

function wholeNumber(option: string, text: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${option} needs a whole number from ${min} to ${max}, and got '${text}'.`);
}

function readFault(text: string): FaultRule {
  const [, path, fault = '', times] = /^(\/[^=]*)=([\w-]+)(?::([1-9]\d*))?$/.exec(text) ?? [];
  const found = toFault(fault);
  if (path !== undefined && found !== undefined) {
    return { path, times: times === undefined ? Infinity : Number(times), fault: found };
  }
  throw new UsageError(
    `--fail needs <path>=<fault>[:<times>], for example '/banks/v1=503:3', and got '${text}'. ` +
      `A fault is a status from 400 to 599, or ${NAMED_FAULTS.join(', ')}.`,
  );
}

function toFault(text: string): AnswerFault | undefined {
  if (/^[45]\d\d$/.test(text)) {
    return {
      status: Number(text),
      json: { status: `SIMULATED_${text}`, message: 'This failure was asked for' },
    };
  }
  return NAMED_FAULTS.find((name) => name === text);
}
