import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { variablePrefix } from '../config/module-name.js';
import { type SimulatorOptions } from '../testing/simulator.options.js';
import { ServiceSimulator } from '../testing/simulator.js';
import { EXIT, type CommandIo } from './command.js';
import { endWithNpm } from './end-with-npm.js';
import { checkFolder, ForeignFileError, writeFiles } from './simulator-files.js';
import { keep, keptPath, readKept } from './simulator-kept.js';
import { addRoutes } from './simulator-routes.js';
import { readSimulatorOptions, SIMULATOR_HELP, type SimulatorCommandOptions } from './simulator-options.js';
import { describeReach, describeRefusal, describeRequest, describeSimulator } from './simulator-report.js';

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

async function serve(
  { ports, host, serverNames, folder, name, isNew, tokenLifetime, routes, faults }: SimulatorCommandOptions,
  io: CommandIo,
): Promise<void> {
  io.keepRunningUnread();
  // Not for a script of package.json, which may start it with & and end.
  if (io.env.npm_lifecycle_event === 'npx') endWithNpm();
  await checkFolder(folder);
  const path = keptPath(io.env, folder);
  const found = isNew || path === undefined ? undefined : await readKept(path);
  const options: SimulatorOptions = {
    ...found?.credentials,
    ports,
    host,
    serverNames,
    tokenLifetime,
    ...(await readHeaderNames(io, name)),
    maxRequests: 1,
    onRequest: (request, milliseconds) => io.out(describeRequest(request, milliseconds)),
    onRefusal: (refusal) => io.out(describeRefusal(refusal)),
  };
  const simulator = found
    ? await ServiceSimulator.startWith(options, found.authority, found)
    : await ServiceSimulator.start(options);
  try {
    addRoutes(simulator, routes);
    for (const fault of faults) simulator.fail(fault);
    const isKept = path !== undefined && (await keep(path, simulator));
    const files = await writeFiles(folder, simulator, name);
    // Not earlier: until then a signal ends the process as usual, whatever it waits for.
    const ended = io.endSignal();
    io.err(describeReach(host, serverNames));
    const kept = describeKept(found !== undefined, isKept);
    io.out(describeSimulator(simulator, files, { name, kept, routes: Object.keys(routes) }));
    await ended;
  } finally {
    await simulator.stop();
  }
}

/** The application's names of headers, by which the simulator has to go too: from the environment, or from its .env. */
async function readHeaderNames(
  { env, cwd }: CommandIo,
  name: string | undefined,
): Promise<Pick<SimulatorOptions, 'appTokenHeader' | 'webhookHeader'>> {
  const file = await readFile(join(cwd, '.env'), 'utf8').catch(() => '');
  const variables: CommandIo['env'] = { ...parseEnv(file), ...env };
  const read = (suffix: string) => variables[variablePrefix(name) + suffix]?.trim() || undefined;
  return { appTokenHeader: read('APP_TOKEN_HEADER'), webhookHeader: read('WEBHOOK_HEADER') };
}

/** What becomes of the certificates and credentials, in one line. */
function describeKept(isFound: boolean, isKept: boolean): string {
  if (isFound) return 'They are those of the last start; --new makes others.';
  if (isKept) return 'They are new, and stay for the next start.';
  return 'They are new at each start, as this user has no folder for data. HOME or XDG_DATA_HOME can name one.';
}

/** Why it did not start, in one line; undefined for what is a fault of this package. */
function describeFailure(error: unknown, { ports, host }: SimulatorCommandOptions): string | undefined {
  const { code, message, port, syscall, path } = error as NodeJS.ErrnoException & { port?: number };
  const used = Object.values(ports ?? {});
  const range = used.length > 0 ? ` (the simulator uses ${used[0]} to ${used.at(-1)})` : '';
  if (code === 'EADDRINUSE') return `Port ${port} is taken${range}. Choose others with --port.`;
  if (code === 'EADDRNOTAVAIL')
    return `This machine has no address ${host}. 0.0.0.0 stands for all that it has.`;
  if (path !== undefined) return `${message}. Choose another folder with --dir.`;
  // A port that this user may not have, a package that is not installed.
  const isOfMachine = error instanceof ForeignFileError || syscall !== undefined || /npm i /.test(message);
  return isOfMachine ? message : undefined;
}
