#!/usr/bin/env node
import { runCommand } from './run-command.js';

let endsUnread = true;
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  // A reader that has seen enough (`| head`) is no failure: what the command found counts, if it has ended.
  if (endsUnread) process.exit(code === 'EPIPE' ? undefined : 1);
});
process.stderr.on('error', () => undefined);

const { env, stdout, stderr } = process;
process.exitCode = await runCommand(process.argv.slice(2), {
  cwd: process.cwd(),
  env,
  out: (text) => void stdout.write(text),
  err: (text) => void stderr.write(text),
  // `isTTY` is undefined if it is no terminal.
  outIsTerminal: stdout.isTTY === true,
  errIsTerminal: stderr.isTTY === true,
  keepRunningUnread: () => {
    endsUnread = false;
  },
  endSignal: () =>
    new Promise((end) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end());
    }),
});
// A pipe has taken this only once it has taken all before it.
for (const stream of [stdout, stderr]) await new Promise((done) => stream.write('', done));
// Only if something that a command used still holds the process, for example a name that is being resolved.
setTimeout(() => process.exit(), 1_000).unref();
