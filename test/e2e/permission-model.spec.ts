import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createAuthority } from '../helpers/certificates.js';
import { commandLine, REGISTER } from '../helpers/source-process.js';

const { allowedNodeEnvironmentFlags: flags, execPath } = process;
// The permission model has --permission since Node 22.13, and --allow-net since Node 25.
const itWithPermission = flags.has('--permission') ? it : it.skip;
const itWithoutNetwork = flags.has('--allow-net') ? it : it.skip;
const NETWORK = flags.has('--allow-net') ? ['--allow-net'] : [];
/** What the hooks need with which Node runs the TypeScript sources. */
const SOURCES = ['--allow-addons', '--allow-worker', '--no-warnings'];

/** Makes a client, requests a list and a token, and writes what was thrown and how many requests there were. */
const PROGRAM = `
const { createServiceClient } = await import(process.env.LIB);
const events = [];
const http = { retries: 2, onCall: ({ kind, attempts }) => events.push(kind + ' ' + attempts) };
const tls = process.env.KEY && {
  certificate: { file: process.env.KEY }, privateKey: { file: process.env.KEY }, publicRoots: true,
};
const errorOf = (call) => call().then(() => 'none', (error) => ({ ...error.toJSON(), message: error.message }));
const options = {
  urls: { sandboxUrl: 'https://localhost:9', sandboxMtlsUrl: 'https://localhost:9', sandboxAuthUrl: 'https://127.0.0.1:9' },
  oauth: { clientId: '0e6a1f7c-5d1b-4c0e-9a53-2f4d7b8c9e10', clientSecret: 's' }, appToken: 'a', tls, http,
  authentication: tls ? 'mtls' : 'app-token',
};
const started = await createServiceClient(options).catch((error) => error);
const said = { start: String(started.message ?? ''), events };
if (!said.start) {
  said.post = await errorOf(() => started.http.post('/payments/v1', {}));
  said.token = await errorOf(() => started.auth.getApiToken());
  await started.close();
}
console.log('RESULT ' + JSON.stringify(said));
`;

describe("Under Node's permission model", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'permission-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  /** Runs a program with these permissions, and resolves with its exit code and its output. */
  function run(args: string[], env: Record<string, string> = {}) {
    return new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
      const child = execFile(
        execPath,
        ['--permission', ...args],
        { env: { ...env, HOME: folder } },
        (_, stdout, stderr) => {
          resolve({ code: child.exitCode, stdout, stderr });
        },
      );
    });
  }
  async function runProgram(permissions: string[], env: Record<string, string> = {}) {
    const args = [...permissions, ...SOURCES, '--import', REGISTER, '--input-type=module', '--eval', PROGRAM];
    const lib = pathToFileURL(join(import.meta.dirname, '../../lib/index.ts')).href;
    const { stdout, stderr } = await run(args, { LIB: lib, ...env });
    const result = /^RESULT (.*)$/m.exec(stdout)?.[1];
    if (result === undefined) throw new Error(stdout + stderr);
    return JSON.parse(result) as Record<'start' | 'post' | 'token' | 'events', unknown>;
  }
  const command = (name: string, ...more: string[]) => {
    const [, ...rest] = commandLine([name, ...more]);
    return [...SOURCES, ...rest];
  };

  itWithoutNetwork(
    'names --allow-net after one attempt, for calls and for tokens, and leaves nothing in doubt',
    async () => {
      const { post, token, events } = await runProgram(['--allow-fs-read=*']);
      for (const error of [post, token])
        expect(error).toMatchObject({
          code: 'connection_network',
          reason: 'ERR_ACCESS_DENIED',
          message: expect.stringMatching(
            /nothing was sent: Node's permission model does not let this process use the network/,
          ),
          hint: expect.stringMatching(/^Start Node with --allow-net/),
          retryable: false,
          outcomeUnknown: false,
        });
      expect(events).toEqual(['api 1', 'token 1']);
    },
  );

  itWithoutNetwork('is named by the doctor', async () => {
    const { code, stdout } = await run(['--allow-fs-read=*', ...command('doctor')], {
      SERVICE_APP_TOKEN: 'a',
      SERVICE_SANDBOX_URL: 'https://127.0.0.1:9',
      SERVICE_AUTHENTICATION: 'app-token',
    });
    expect(stdout).toMatch(
      /failed +api\.connection .*permission model.*\(ERR_ACCESS_DENIED\)\.\n +-> Start Node with --allow-net/,
    );
    expect(code).toBe(1);
  });

  itWithPermission('names --allow-fs-read for a certificate file that may not be read', async () => {
    const { certificate, key } = await (await createAuthority()).client('app');
    const file = join(folder, 'app.pem');
    await writeFile(file, certificate + key);
    const sources = join(import.meta.dirname, '../..');
    const permissions = [`--allow-fs-read=${sources}/*`, ...NETWORK];
    const { start } = await runProgram(permissions, { KEY: file });
    expect(start).toMatch(
      new RegExp(
        `the file ${file} cannot be read \\(ERR_ACCESS_DENIED\\)\\. Node's permission model .*--allow-fs-read`,
      ),
    );
  });

  itWithPermission(
    'the simulator command without the right to write its files ends with one line',
    async () => {
      const args = command('simulator', '--port', '0', '--dir', join(folder, 'simulated'));
      const { code, stderr } = await run(['--allow-fs-read=*', ...NETWORK, ...args]);
      expect(stderr).toMatch(
        /^Node's permission model: Access to this API has been restricted\. [^\n]*simulated\n$/,
      );
      expect(code).toBe(1);
      expect(await readdir(folder)).not.toContain('simulated');
    },
  );
});
