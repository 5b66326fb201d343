import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument } from '../helpers/readme.js';

let simulator: ServiceSimulator;
let folder: string;

beforeAll(async () => {
  [simulator, folder] = await Promise.all([
    ServiceSimulator.start(),
    mkdtemp(join(tmpdir(), 'docs-service-')),
  ]);
});
afterAll(() => Promise.all([simulator.stop(), rm(folder, { recursive: true })]));

it('docs/service.md has a command that tests mutual TLS, and creates no customer', async () => {
  const { fences } = await readDocument('docs/service.md');
  const command = fences.find(({ language }) => language === 'sh')?.text ?? '';
  const { certificate, privateKey } = simulator.application;
  const files = {
    'application.crt': certificate,
    'private-key.pem': privateKey,
    'service-chain.pem': simulator.chain,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const { SERVICE_APP_TOKEN, SERVICE_BASE_URL } = simulator.env();
  const { stdout } = await promisify(execFile)('sh', ['-c', command], {
    cwd: folder,
    env: { PATH: process.env.PATH, SERVICE_APP_TOKEN, SERVICE_BASE_URL },
    timeout: 20_000,
  });
  expect(JSON.parse(stdout)).toEqual({ status: expect.anything(), message: expect.any(String) });
  expect(simulator.apiRequests).toMatchObject([
    {
      face: 'base',
      method: 'POST',
      path: '/customers/v1',
      status: 400,
      certificateSubject: simulator.application.subject,
    },
  ]);
  expect(simulator.customers).toEqual([]);
});
