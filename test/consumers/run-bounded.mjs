import { spawn } from 'node:child_process';

const KILL_GRACE_MS = 2_000;
const running = new Set();

/** What the consumer's processes see: nothing of the service, and no flags of the process that started us. */
function cleanEnvironment() {
  const kept = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('SERVICE_') && name !== 'NODE_OPTIONS',
  );
  return { ...Object.fromEntries(kept), NO_COLOR: '1' };
}

/** In a process group of its own. `output()`: all that it printed; `ended`: how it ended. */
function start(command, args, { cwd, env }) {
  const child = spawn(command, args, {
    cwd,
    env: { ...cleanEnvironment(), ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let output = '';
  const listeners = [];
  const collect = (chunk) => {
    output += chunk;
    for (const listener of listeners) listener();
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const ended = new Promise((resolve) => {
    child.on('error', ({ message }) => resolve({ how: message }));
    child.on('close', (code, signal) => resolve({ code, how: `ended with ${signal ?? code}` }));
  }).finally(() => running.delete(child));
  const line = [command, ...args].join(' ');
  const fault = (how) => new Error(`${line}\n${how}\n${output}`);
  return { child, output: () => output, onOutput: (listener) => listeners.push(listener), ended, fault };
}

/**
 * Runs a command to its end. Rejects, with all that it printed, where it exits with another code than 0 or is still
 * running after `timeoutMs`; then its whole process group is ended.
 */
export async function runBounded(command, args, { cwd, env, timeoutMs }) {
  const { child, output, ended, fault } = start(command, args, { cwd, env });
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    endGroup(child);
  }, timeoutMs);
  const { code, how } = await ended;
  clearTimeout(timer);
  if (timedOut) throw fault(`not done after ${timeoutMs / 1000} s`);
  if (code !== 0) throw fault(how);
  return output();
}

/** Runs `npm install` in a folder, with more arguments if there are some. */
export function npmInstall(cwd, ...args) {
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock'];
  return runBounded('npm', ['install', ...quiet, ...args], { cwd, timeoutMs: 300_000 });
}

/**
 * Starts a command that keeps running, and waits until it has printed `ready`: then its output so far, and `end()`,
 * which ends it with SIGTERM, and with SIGKILL after `graceMs`.
 * Rejects where it ends before, or has not printed it after `timeoutMs`; then its process group is ended.
 */
export async function runUntil(command, args, { cwd, env, timeoutMs, ready }) {
  const { child, output, onOutput, ended, fault } = start(command, args, { cwd, env });
  let timer;
  const outcome = await Promise.race([
    new Promise((resolve) => onOutput(() => output().includes(ready) && resolve('ready'))),
    new Promise((resolve) => (timer = setTimeout(resolve, timeoutMs, 'late'))),
    ended,
  ]);
  clearTimeout(timer);
  const end = (graceMs) => {
    if (running.has(child)) endGroup(child, graceMs);
    return ended;
  };
  if (outcome === 'ready') return { output, end };
  await end();
  throw fault(outcome === 'late' ? `did not print "${ready}" in ${timeoutMs / 1000} s` : outcome.how);
}

/** Ends what is still running, for an interrupted run. */
export function endAll() {
  for (const child of running) signalGroup(child, 'SIGKILL');
}

function endGroup(child, graceMs = KILL_GRACE_MS) {
  signalGroup(child, 'SIGTERM');
  setTimeout(() => running.has(child) && signalGroup(child, 'SIGKILL'), graceMs).unref();
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has ended by itself.
  }
}
