// A function in one bundle, as a platform runs it: without node_modules, stopped between two events, while the service
// ends the connections. Prints what a cold start takes.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

if (process.argv[2] === 'platform') {
  const { handler } = await import(process.argv[3]);
  const answer = (event) => handler(event).catch(({ message }) => message);
  process.on('message', async (event) => {
    const answered = await answer(event);
    const { user, system } = process.cpuUsage();
    process.send({ answered, cpu: (user + system) / 1e3 });
  });
  process.send('loaded');
} else {
  // Not above: it would be a part of each cold start.
  const { ServiceSimulator } = await import('nestjs-service/testing');
  const simulator = await ServiceSimulator.start();
  const variables = simulator.env({ environment: 'production', authentication: 'mtls', oauth: true });
  const env = { PATH: process.env.PATH, SERVICE_TOKEN_REFRESH: 'on-expiry', ...variables };
  const folder = await mkdtemp(join(tmpdir(), 'function-'));
  const own = join(import.meta.dirname, '..');
  const bundle = join(folder, 'index.mjs');
  await cp(join(own, 'function', 'index.mjs'), bundle);

  const start = (file) => fork(process.argv[1], ['platform', file], { env, cwd: folder });
  const call = async (instance, id) => {
    const answer = once(instance, 'message');
    instance.send({ app_user_id: id });
    const [{ answered, cpu }] = await answer;
    assert.equal(answered.app_user_id, id, JSON.stringify(answered));
    return cpu;
  };
  const coldStart = async (file) => {
    const began = performance.now();
    const instance = start(file);
    await once(instance, 'message');
    const cpu = await call(instance, randomUUID());
    const took = performance.now() - began;
    instance.kill();
    await once(instance, 'exit');
    return { took, cpu };
  };
  /** The fastest of some: others may be busy on this machine. */
  const fastest = async (file) => {
    const starts = [];
    for (let count = 0; count < 7; count++) starts.push(await coldStart(file));
    const least = (name) => Math.round(Math.min(...starts.map((each) => each[name])));
    return `cold start ${least('took')} ms, ${least('cpu')} ms of CPU`;
  };

  try {
    const size = (await stat(bundle)).size / 1e6;
    const zipped = gzipSync(await readFile(bundle)).length / 1e6;
    console.log(`bundle: ${size.toFixed(1)} MB, zipped ${zipped.toFixed(2)} MB, ${await fastest(bundle)}`);
    console.log(`node_modules: ${await fastest(join(own, 'dist', 'function.js'))}`);

    const instance = start(bundle);
    await once(instance, 'message');
    for (let count = 0; count < 10; count++) {
      await call(instance, `a-${count}`);
      instance.kill('SIGSTOP');
      simulator.dropConnections();
      const called = call(instance, `b-${count}`);
      instance.kill('SIGCONT');
      await called;
    }
    instance.kill();
    await once(instance, 'exit');
  } finally {
    await rm(folder, { recursive: true });
    await simulator.stop();
  }
}
