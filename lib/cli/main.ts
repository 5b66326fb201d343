#!/usr/bin/env node
import { runCommand } from './run-command.js';

// A reader that has seen enough (`| head`) is no failure.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 0 : 1));

const { env, stdout, stderr } = process;
process.exitCode = await runCommand(process.argv.slice(2), {
  env,
  out: (text) => void stdout.write(text),
  err: (text) => void stderr.write(text),
  // `isTTY` is undefined where it is no terminal.
  outIsTerminal: stdout.isTTY === true,
  errIsTerminal: stderr.isTTY === true,
});
// Only where something that a command used still holds the process, for example a name that is being resolved.
setTimeout(() => process.exit(), 1_000).unref();
