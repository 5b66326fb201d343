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

/**
 * Runs a command to its end. Rejects, with all that it printed, where it exits with another code than 0 or is still
 * running after `timeoutMs`; then its whole process group is ended.
 */
export function runBounded(command, args, { cwd, timeoutMs }) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: cleanEnvironment(),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    let output = '';
    const collect = (chunk) => (output += chunk);
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const line = [command, ...args].join(' ');
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      endGroup(child);
    }, timeoutMs);
    child.on('error', (error) => {
      clearTimeout(timer);
      running.delete(child);
      reject(new Error(`${line}: ${error.message}`));
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      running.delete(child);
      if (code === 0 && !timedOut) return resolve(output);
      const how = timedOut ? `not done after ${timeoutMs / 1000} s` : `ended with ${signal ?? code}`;
      reject(new Error(`${line}\n${how}\n${output}`));
    });
  });
}

/** Ends what is still running, for an interrupted run. */
export function endAll() {
  for (const child of running) signalGroup(child, 'SIGKILL');
}

function endGroup(child) {
  signalGroup(child, 'SIGTERM');
  setTimeout(() => running.has(child) && signalGroup(child, 'SIGKILL'), KILL_GRACE_MS).unref();
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has ended by itself.
  }
}
