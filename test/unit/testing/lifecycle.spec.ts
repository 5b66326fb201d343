import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { createServer } from 'node:net';
import { inspect } from 'node:util';
import { ServiceSimulator } from '../../../lib/testing/simulator.js';
import { freePort } from '../../helpers/loopback.js';
import { TimerCount } from '../../helpers/timer-count.js';
import { call, failCode, keptAliveAgent } from './plain-client.js';

describe('starting and stopping ServiceSimulator', () => {
  let simulator: ServiceSimulator;
  afterEach(() => simulator.stop());

  const sockets = () => process.getActiveResourcesInfo().filter((name) => /TCP|TLS/.test(name)).length;

  it('stop() ends connections, hanging calls and timers, leaves nothing, and may be called again', async () => {
    const socketsBefore = sockets();
    const timers = new TimerCount();
    simulator = await ServiceSimulator.start({ delayMs: { 'sandbox-mtls': 60_000 } });
    const agent = keptAliveAgent(simulator, simulator.application);
    await call(simulator, `${simulator.urls.sandboxUrl}/echo/v1`, { agent });
    simulator.fail({ fault: 'hang' });
    const hanging = failCode(call(simulator, `${simulator.urls.baseUrl}/echo/v1`));
    await simulator.waitForRequest((request) => request.face === 'base');
    simulator.fail({ fault: { trickleMs: 10 } });
    const trickling = failCode(call(simulator, `${simulator.urls.baseUrl}/echo/v1`));
    const delayed = failCode(
      call(simulator, `${simulator.urls.sandboxMtlsUrl}/echo/v1`, { certificate: simulator.application }),
    );
    await simulator.waitForRequest((request) => request.face === 'sandbox-mtls');
    await simulator.waitForRequest((request) => request.status === undefined);
    const waiting = simulator.waitForRequest(() => false).catch((error: Error) => error.message);
    expect(simulator.openConnections).toBeGreaterThanOrEqual(3);
    simulator.fail({ face: 'sandbox', fault: { tlsAlert: 'unknown_ca' } });
    expect(await failCode(call(simulator, simulator.urls.sandboxUrl))).toContain('UNKNOWN_CA');
    // Those of the late answer, of the trickle, of who waits for a request, and of the alert.
    expect(timers.running).toBeGreaterThanOrEqual(4);

    await Promise.all([simulator.stop(), simulator.stop()]);
    await simulator.stop();
    agent.destroy();
    expect(await hanging).toBe('ECONNRESET');
    expect(await trickling).toBe('ECONNRESET');
    expect(await delayed).toBe('ECONNRESET');
    expect(await waiting).toBe('The simulator was stopped');
    expect(simulator.openConnections).toBe(0);
    expect(timers.running).toBe(0);
    timers.restore();
    // Node closes them in its own time, and those of earlier spec files of the same process too.
    while (sockets() > socketsBefore) await new Promise(setImmediate);
    expect(await failCode(call(simulator, simulator.urls.baseUrl))).toBe('ECONNREFUSED');
    expect(simulator.requests.length).toBeGreaterThan(0);
  });

  it('is disposable', async () => {
    simulator = await ServiceSimulator.start();
    await simulator[Symbol.asyncDispose]();
    expect(await failCode(call(simulator, simulator.urls.baseUrl))).toBe('ECONNREFUSED');
  });

  it('start() uses the ports and credentials given', async () => {
    const port = await freePort();
    const server = createServer().listen(port, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const taken = ServiceSimulator.start({ ports: { sandboxUrl: port } });
    await expect(taken).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await new Promise((resolve) => server.close(resolve));

    const clientId = '7d6e7a5e-58a5-4f6d-9d29-02c2cf0a2d0f';
    const given = { clientId, clientSecret: 'secret', appToken: 'token' };
    simulator = await ServiceSimulator.start({ ports: { sandboxUrl: port }, ...given });
    expect(simulator.urls.sandboxUrl).toBe(`https://127.0.0.1:${port}`);
    expect(simulator).toMatchObject(given);
    await simulator.stop();
  });

  it('two simulators share nothing', async () => {
    const [one, two] = await Promise.all([ServiceSimulator.start(), ServiceSimulator.start()]);
    const headers = { authorization: `Bearer ${await one.issueToken()}` };
    expect((await call(two, `${two.urls.baseUrl}/banks/v1`, { headers })).status).toBe(401);
    expect([one.requests.length, two.requests.length]).toEqual([0, 1]);
    expect(one.clientId).not.toBe(two.clientId);
    expect(one.appToken).not.toBe(two.appToken);
    await Promise.all([one.stop(), two.stop()]);
  });

  it('waitForRequest() finds past and future requests, and gives up', async () => {
    simulator = await ServiceSimulator.start();
    const coming = simulator.waitForRequest(({ path }) => path === '/second');
    await call(simulator, `${simulator.urls.sandboxUrl}/first`);
    await call(simulator, `${simulator.urls.sandboxUrl}/second`);
    expect((await coming).path).toBe('/second');
    expect((await simulator.waitForRequest(({ path }) => path === '/first')).status).toBe(401);
    const never = simulator.waitForRequest(() => false, 10);
    await expect(never).rejects.toThrow(
      'No such request within 10 ms. The last ones: sandbox GET /first, sandbox GET /second',
    );
    await simulator.stop();
  });

  it('goes on if a callback throws or rejects, and tells of it', async () => {
    const mistake = () => {
      throw new Error('mistake of the test');
    };
    const late: () => unknown = async () => mistake();
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    simulator = await ServiceSimulator.start({
      onRequest: late,
      onRefusal: mistake,
      random: mistake,
    });
    const { urls } = simulator;
    simulator.fail({ probability: 0.5, fault: 'reset-handshake' });
    const waiting = simulator.waitForRequest(mistake);
    const refused = expect(waiting).rejects.toThrow('mistake of the test');
    expect((await call(simulator, `${urls.sandboxUrl}/banks/v1`)).status).toBe(401);
    await refused;
    await expect(simulator.waitForRequest(mistake)).rejects.toThrow('mistake of the test');
    expect(await failCode(call(simulator, urls.sandboxMtlsUrl))).toContain('CERTIFICATE_REQUIRED');
    for (const name of ['onRequest', 'onRefusal', 'random']) {
      const text = `${name} of ServiceSimulator threw: Error: mistake of the test`;
      while (!warned.mock.calls.some(([warning]) => String(warning).startsWith(text))) {
        await new Promise(setImmediate);
      }
    }
    warned.mockRestore();
  });

  it('keeps a bounded record, live and as it arrived', async () => {
    simulator = await ServiceSimulator.start({ maxRequests: 4 });
    const { requests } = simulator;
    for (const path of ['/1', '/2', '/3', '/4', '/5?q=%20']) {
      await call(simulator, simulator.urls.sandboxUrl + path, { headers: { 'X-Mixed': 'Case' } });
    }
    expect(requests.map(({ path }) => path)).toEqual(['/3', '/4', '/5?q=%20']);
    expect(requests[0].headers['x-mixed']).toBe('Case');
    expect(requests[0].rawHeaders).toContain('X-Mixed');
    simulator.clearRequests();
    expect(requests).toEqual([]);
    await simulator.stop();
  });

  it('does not print its keys, beyond the application certificate it hands out', async () => {
    simulator = await ServiceSimulator.start();
    const printed = inspect(simulator, { depth: 20, showHidden: true });
    expect(printed).not.toContain(simulator.clientSecret);
    expect(printed.match(/PRIVATE KEY/g)?.length ?? 0).toBeLessThanOrEqual(2);
    await simulator.stop();
  });
});
