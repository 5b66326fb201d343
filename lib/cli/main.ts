#!/usr/bin/env node
import { runCommand } from './run-command.js';

let endsUnread = true;
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  // A reader that has seen enough (`| head`) is no failure.
  if (endsUnread) process.exit(code === 'EPIPE' ? 0 : 1);
});

const { env, stdout, stderr } = process;
process.exitCode = await runCommand(process.argv.slice(2), {
  env,
  out: (text) => void stdout.write(text),
  err: (text) => void stderr.write(text),
  // `isTTY` is undefined where it is no terminal.
  outIsTerminal: stdout.isTTY === true,
  errIsTerminal: stderr.isTTY === true,
  keepRunningUnread: () => {
    endsUnread = false;
    stderr.on('error', () => undefined);
  },
});
// Only where something that a command used still holds the process, for example a name that is being resolved.
setTimeout(() => process.exit(), 1_000).unref();
