import assert from 'node:assert/strict';
import { cp, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { npmInstall, runUntil } from './run-bounded.mjs';

const ROOT = join(import.meta.dirname, '..', '..');
/** The npm package that holds the binary; there are others for other machines. */
const BUN = '@oven/bun-linux-x64';

/** A host, run by Bun; the simulator is run by this Node, and says what arrived. As checks to run in order. */
export async function bunChecks({ template, folder }) {
  return {
    name: basename(template),
    checks: [
      {
        name: 'install',
        run: async () => {
          await cp(template, folder, { recursive: true });
          await npmInstall(folder, `${BUN}@1.4`);
        },
      },
      { name: 'bun', run: () => checkHost(join(folder, 'node_modules', BUN, 'bin', 'bun'), folder) },
    ],
  };
}

async function checkHost(bun, folder) {
  const { ServiceSimulator } = await import(join(ROOT, 'dist', 'testing', 'index.js'));
  const simulator = await ServiceSimulator.start();
  const files = { certificate: join(folder, 'tls.crt'), privateKey: join(folder, 'tls.key') };
  const put = (issued) => Promise.all(Object.keys(files).map((key) => writeFile(files[key], issued[key])));
  await put(simulator.application);
  const { SERVICE_TLS_CERTIFICATE: _, SERVICE_TLS_PRIVATE_KEY: __, ...env } = simulator.env({ oauth: true });
  const host = await runUntil(bun, ['run', join('programs', 'host.mjs')], {
    cwd: folder,
    env: {
      ...env,
      ...simulator.env({
        name: 'ksa',
        environment: 'sandbox',
        authentication: 'oauth',
        clientCertificate: false,
      }),
      SERVICE_TLS_CERTIFICATE_FILE: files.certificate,
      SERVICE_TLS_PRIVATE_KEY_FILE: files.privateKey,
      SERVICE_HTTP_MAX_SOCKETS: '3',
      SERVICE_HTTP_MAX_RESPONSE_BYTES: '100000',
      SERVICE_HTTP_SHUTDOWN_TIMEOUT: '1000',
    },
    timeoutMs: 20_000,
    ready: 'listening at ',
  });
  const [, url] = /listening at (\S+) /.exec(host.output());
  const call = async (name) => {
    const answer = await fetch(`${url}/${name}`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(20_000),
    });
    return { status: answer.status, body: await answer.json() };
  };
  /** What a call answers with, and the requests that arrived. */
  const arrived = async (name, fault) => {
    const active = fault && simulator.fail(fault);
    simulator.clearRequests();
    const answer = await call(name);
    active?.stop();
    return { ...answer, requests: [...simulator.requests] };
  };
  try {
    await checkTokens(simulator, arrived);
    await checkLimits(simulator, arrived, call);
    await checkServer(simulator, call);
    await checkRotation(simulator, call, put);
    await checkOnce(simulator, call);
    await checkShutdown(simulator, call, host);
  } catch (error) {
    throw new Error(`${error.stack}\n${host.output()}`, { cause: error });
  } finally {
    await host.end();
    await simulator.stop();
  }
}

async function checkTokens(simulator, arrived) {
  const {
    requests: [call],
  } = await arrived('banks');
  assert.equal(call.certificateFingerprint256, simulator.application.fingerprint256);
  assert.equal(call.headers['service-app-token'], simulator.appToken);
  await arrived('session');
  assert.equal((await arrived('session')).requests.length, 0, 'a customer token is not kept');
  assert.deepEqual(faces(await arrived('bearer')), ['token 200', 'sandbox 200']);
  assert.deepEqual(faces(await arrived('bearer')), ['sandbox 200']);
  simulator.revokeTokens();
  assert.deepEqual(faces(await arrived('bearer')), ['sandbox 401', 'token 200', 'sandbox 200']);
}

async function checkLimits(simulator, arrived, call) {
  const bodies = { status: 200, json: 'x'.repeat(1_000_000) };
  for (const fault of ['hang', { trickleMs: 20 }]) {
    const { body } = await arrived('late', { path: '/late', times: 9, fault });
    assert.equal(body.code, 'connection_timeout');
  }
  for (const fault of [{ gzipBombBytes: 10_000_000 }, bodies]) {
    const { body } = await arrived('big', { path: '/big', fault });
    assert.equal(body.code, 'connection_too_large');
  }
  simulator.clearRequests();
  const slow = simulator.fail({ path: '/slow', times: 9, fault: { delayMs: 50 } });
  await Promise.all(Array.from({ length: 9 }, () => call('slow')));
  slow.stop();
  const connections = new Set(simulator.requests.map(({ connection }) => connection));
  assert.equal(simulator.requests.length, 9);
  assert.ok(connections.size <= 3, `${connections.size} connections`);
}

/** A server that is not the service gets no request. */
async function checkServer(simulator, call) {
  for (const wrong of [{ foreign: true }, { names: ['other.example'] }]) {
    await simulator.useServerCertificate(wrong);
    simulator.dropConnections();
    simulator.clearRequests();
    assert.equal((await call('banks')).body.code, 'connection_tls');
    assert.equal(simulator.requests.length, 0);
  }
  await simulator.useServerCertificate();
}

async function checkRotation(simulator, call, put) {
  const next = await simulator.issueCertificate();
  await put(next);
  const endsAt = Date.now() + 20_000;
  while ((await call('certificate')).body.fingerprint256 !== next.fingerprint256) {
    assert.ok(Date.now() < endsAt, 'the new certificate is not in use');
    await delay(100);
  }
  simulator.clearRequests();
  await call('banks');
  assert.equal(simulator.requests[0].certificateFingerprint256, next.fingerprint256);
}

/** A POST on a connection that was used before, which is reset or times out when it has arrived, is sent once. */
async function checkOnce(simulator, call) {
  simulator.clearRequests();
  for (const fault of ['reset', 'hang']) {
    await call('banks');
    const active = simulator.fail({ path: '/change', times: 9, fault });
    await call('change');
    active.stop();
  }
  await call('banks');
  const sent = simulator.requests.filter(({ path }) => path === '/change').length;
  assert.equal(sent, 2, 'a POST was sent twice');
}

/** At SIGTERM a call may end in its time; one that takes longer is aborted. */
async function checkShutdown(simulator, call, host) {
  simulator.fail({ path: '/slow', fault: { delayMs: 200 } });
  simulator.fail({ path: '/banks/v1', times: 9, fault: 'hang' });
  simulator.clearRequests();
  const answers = [call('slow'), call('banks')];
  for (const path of ['/slow', '/banks/v1'])
    await simulator.waitForRequest((request) => request.path === path);
  const ended = host.end();
  const [slow, banks] = await Promise.all(answers);
  assert.equal(slow.status, 404);
  assert.equal(banks.body.code, 'connection_closed');
  assert.match((await ended).how, /SIGTERM/);
  assert.match(host.output(), /1 call was still running after http\.shutdownTimeout/);
}

const faces = ({ requests }) => requests.map(({ face, status }) => `${face} ${status}`);
