import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { variablePrefix } from '../config/names.js';
import { ACCESS_DENIED } from '../errors/service.error.js';
import { DEFAULT_BRAND } from '../testing/module-options.js';
import { type SimulatorOptions } from '../testing/simulator.options.js';
import { ServiceSimulator } from '../testing/simulator.js';
import { type CommandIo, endWithNpm, EXIT } from './command.js';
import {
  checkFolder,
  ForeignFileError,
  readState,
  statePath,
  writeFiles,
  writeState,
} from './simulator-files.js';
import {
  addRoutes,
  readSimulatorOptions,
  SIMULATOR_HELP,
  type SimulatorCommandOptions,
} from './simulator-options.js';
import {
  describeContent,
  describeReach,
  describeRefusal,
  describeRequest,
  describeSimulator,
} from './simulator-report.js';

/** Runs the simulator until SIGINT or SIGTERM. */
export async function run(args: string[], io: CommandIo): Promise<number> {
  const options = await readSimulatorOptions(args, io.cwd);
  if (options === 'help') {
    io.out(SIMULATOR_HELP);
    return EXIT.ok;
  }
  try {
    await serve(options, io);
    return EXIT.ok;
  } catch (error) {
    const reason = describeFailure(error, options);
    if (reason === undefined) throw error;
    io.err(`${reason}\n`);
    return EXIT.failed;
  }
}

async function serve(command: SimulatorCommandOptions, io: CommandIo): Promise<void> {
  const { ports, host, serverNames, folder, name, isNew, isVerbose, tokenLifetime, routes, faults } = command;
  io.keepRunningUnread();
  // A script of package.json may start the simulator in the background with & and end: then the simulator goes on.
  if (io.env.npm_lifecycle_event === 'npx') endWithNpm();
  await checkFolder(folder);
  const path = statePath(io.env, folder);
  const found = isNew || path === undefined ? undefined : await readState(path);
  const brand = await readBrandSettings(io, name);
  const { appTokenHeader = DEFAULT_BRAND.appTokenHeader } = brand;
  const options: SimulatorOptions = {
    ...found?.credentials,
    ports,
    host,
    serverNames,
    tokenLifetime,
    ...brand,
    maxRequests: 1,
    onRequest: (request, milliseconds) => {
      io.out(describeRequest(request, milliseconds));
      if (isVerbose) io.out(describeContent(request, appTokenHeader));
    },
    onRefusal: (refusal) => io.out(describeRefusal(refusal)),
  };
  const simulator = found
    ? await ServiceSimulator.startWith(options, found.authority, found)
    : await ServiceSimulator.start(options);
  try {
    addRoutes(simulator, routes);
    for (const fault of faults) simulator.fail(fault);
    const isStored = path !== undefined && (await writeState(path, simulator));
    const files = await writeFiles(folder, simulator, name);
    // Only now: a signal during the start ends the process at once.
    const ended = io.waitForEndSignal();
    io.err(describeReach(host, serverNames));
    const stateLine = describeState(found !== undefined, isStored);
    io.out(describeSimulator(simulator, files, { name, stateLine, routes: Object.keys(routes) }));
    await ended;
  } finally {
    await simulator.stop();
  }
}

/** Reads the header names and the form of webhook signatures that the application expects from the environment or its .env. */
async function readBrandSettings(
  { env, cwd }: CommandIo,
  name: string | undefined,
): Promise<SimulatorOptions> {
  const file = await readFile(join(cwd, '.env'), 'utf8').catch(() => '');
  const variables: CommandIo['env'] = { ...parseEnv(file), ...env };
  const read = (suffix: string) => variables[variablePrefix(name) + suffix]?.trim();
  return {
    appTokenHeader: read('APP_TOKEN_HEADER') || undefined,
    webhookHeader: read('WEBHOOK_HEADER') || undefined,
    webhookAlgorithm: read('WEBHOOK_ALGORITHM') || undefined,
    webhookPrefix: read('WEBHOOK_PREFIX'),
  };
}

/** Says whether the certificates and credentials are new, and whether the next start uses them again. */
function describeState(isFound: boolean, isStored: boolean): string {
  if (isFound) return 'They are the same as at the last start. For new ones: --new';
  if (isStored) return 'They are new. The next start uses them again.';
  return 'They are new at each start, because they cannot be stored. Set HOME or XDG_DATA_HOME to a folder that this user can write to.';
}

/** Says in one line why the simulator did not start; undefined for a bug of this package. */
function describeFailure(error: unknown, { ports, host }: SimulatorCommandOptions): string | undefined {
  const { code, message, port, syscall, path, resource } = error as NodeJS.ErrnoException & {
    port?: number;
    resource?: string;
  };
  const used = Object.values(ports ?? {});
  const range = used.length > 0 ? ` (the simulator uses ${used[0]} to ${used.at(-1)})` : '';
  if (code === 'EADDRINUSE')
    return `Port ${port} is in use${range}. Is another simulator running? Otherwise choose other ports with --port.`;
  if (code === 'EADDRNOTAVAIL')
    return `This machine does not have the address ${host}. To listen on all its addresses: --host 0.0.0.0`;
  // Node's own message names the flag that allows it.
  if (code === ACCESS_DENIED)
    return [`Node's permission model: ${message}`, resource].filter(Boolean).join(' ');
  if (path !== undefined) return `${message}. Choose another folder with --dir.`;
  // For example a port that this user may not use, a package that is not installed, or a runtime without what it needs.
  const isOfMachine =
    error instanceof ForeignFileError || syscall !== undefined || /npm i |on Bun/.test(message);
  return isOfMachine ? message : undefined;
}
