#!/usr/bin/env node
import { runCommand } from './run-command.js';

let endsUnread = true;
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  // A reader that closes the pipe early, such as `| head`, is not a failure.
  if (endsUnread) process.exit(code === 'EPIPE' ? undefined : 1);
});
process.stderr.on('error', () => undefined);

const { env, stdout, stderr } = process;
process.exitCode = await runCommand(process.argv.slice(2), {
  cwd: process.cwd(),
  env,
  out: (text) => void stdout.write(text),
  err: (text) => void stderr.write(text),
  // `isTTY` is undefined, not false, if the stream is not a terminal.
  outIsTerminal: stdout.isTTY === true,
  errIsTerminal: stderr.isTTY === true,
  keepRunningUnread: () => {
    endsUnread = false;
  },
  waitForEndSignal: () =>
    new Promise((end) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end());
    }),
});
// Writes to a pipe may be asynchronous. The callback of an empty write comes after all earlier output has been written.
for (const stream of [stdout, stderr]) await new Promise((done) => stream.write('', done));
// A pending DNS lookup, for example, would keep the process alive although the command has finished.
setTimeout(() => process.exit(), 1_000).unref();
