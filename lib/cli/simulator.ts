import { type SimulatorOptions } from '../testing/simulator.options.js';
import { ServiceSimulator } from '../testing/simulator.js';
import { EXIT, type CommandIo, UsageError } from './command.js';
import { endWithNpm } from './end-with-npm.js';
import { exposureTo } from './git-ignores.js';
import { checkFolder, ForeignFileError, KEPT_FILE, writeFiles } from './simulator-files.js';
import { readKept, textToKeep } from './simulator-kept.js';
import { FAULT_HELP, PlacedFaults, readFault } from './simulator-faults.js';
import { addRoutes } from './simulator-routes.js';
import { readSimulatorOptions, SIMULATOR_HELP, type SimulatorCommandOptions } from './simulator-options.js';
import {
  describeLine,
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

async function serve(
  { ports, host, serverNames, folder, name, isNew, tokenLifetime, routes, faults }: SimulatorCommandOptions,
  io: CommandIo,
): Promise<void> {
  io.keepRunningUnread();
  // Not for a script of package.json, which may start it with & and end.
  if (io.env.npm_lifecycle_event === 'npx') endWithNpm();
  await checkFolder(folder);
  const exposure = await exposureTo(folder, KEPT_FILE, io.env);
  const found = isNew || exposure !== undefined ? undefined : await readKept(folder);
  const start = (options: SimulatorOptions) =>
    found
      ? ServiceSimulator.startWith(options, found.authority, found.application)
      : ServiceSimulator.start(options);
  const simulator = await start({
    ...found?.credentials,
    ports,
    host,
    serverNames,
    tokenLifetime,
    maxRequests: 1,
    onRequest: (request, milliseconds) => io.out(describeRequest(request, milliseconds)),
    onRefusal: (refusal) => io.out(describeRefusal(refusal)),
  });
  try {
    addRoutes(simulator, routes);
    const placed = new PlacedFaults(simulator);
    for (const fault of faults) placed.add(fault);
    const kept = exposure === undefined ? await textToKeep(simulator) : undefined;
    const files = await writeFiles(folder, simulator, { name, kept });
    // Not earlier: until then a signal ends the process as usual, whatever it waits for.
    const ended = io.endSignal();
    io.err(describeReach(host, serverNames));
    const said = { name, kept: describeKept(found !== undefined, exposure), routes: Object.keys(routes) };
    io.out(describeSimulator(simulator, files, said));
    io.onLine((line) => {
      if (line.trim() !== '') obey(line, placed, io);
    });
    await ended;
  } finally {
    await simulator.stop();
  }
}

/** Does what a line of the input says. */
function obey(line: string, placed: PlacedFaults, io: CommandIo): void {
  if (line.trim() === 'help') return io.out(`${FAULT_HELP}\n`);
  try {
    placed.replace(readFault(line));
    io.out(describeLine(line));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    io.err(`${error.message} The line help lists all.\n`);
  }
}

/** What becomes of the certificates and credentials, in one line. */
function describeKept(isFound: boolean, exposure: string | undefined): string {
  if (exposure !== undefined) {
    return `They are new at each start, as ${exposure}: with a .gitignore in the folder that has the line *, they stay.`;
  }
  return isFound
    ? 'They are those of the last start; --new makes others.'
    : 'They are new, and stay for the next start.';
}

/** A volume of Docker, for example, belongs to root. */
function describeNoAccess(folder: string): string {
  return `This user may not make or use ${folder}. Choose another folder with --dir, or run as its owner.`;
}

/** Why it did not start, in one line; undefined for what is a fault of this package. */
function describeFailure(
  error: unknown,
  { ports, host, folder }: SimulatorCommandOptions,
): string | undefined {
  const { code, message, port, syscall, path } = error as NodeJS.ErrnoException & { port?: number };
  const used = Object.values(ports ?? {});
  const range = used.length > 0 ? ` (the simulator uses ${used[0]} to ${used.at(-1)})` : '';
  if (code === 'EADDRINUSE') return `Port ${port} is taken${range}. Choose others with --port.`;
  if (code === 'EACCES' && path?.startsWith(folder)) return describeNoAccess(folder);
  if (code === 'ENOTDIR') return `${folder} is in or at a file. Choose another folder with --dir.`;
  if (code === 'EADDRNOTAVAIL')
    return `This machine has no address ${host}. 0.0.0.0 stands for all that it has.`;
  // A port that this user may not have, a folder that cannot be written, a package that is not installed.
  const isOfMachine = error instanceof ForeignFileError || syscall !== undefined || /npm i /.test(message);
  return isOfMachine ? message : undefined;
}
