import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type DynamicModule, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceHttpService, ServiceModule } from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { readVariables } from '../../lib/config/variables.js';
import { readDocument, type Snippets, writeSnippets } from '../helpers/readme.js';
import { startSimulator } from '../helpers/simulators.js';

interface BankClient {
  banks(): Promise<unknown>;
}

const before = { ...process.env };

describe('docs/migration.md', () => {
  let simulator: ServiceSimulator;
  let document: Awaited<ReturnType<typeof readDocument>>;
  let snippets: Snippets;
  let folder: string;

  beforeAll(async () => {
    [simulator, document, folder] = await Promise.all([
      startSimulator(),
      readDocument('docs/migration.md'),
      mkdtemp(join(tmpdir(), 'migration-')),
    ]);
    snippets = await writeSnippets(document.fences, { name: 'migration' });
  });
  afterEach(() => {
    for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key];
  });
  afterAll(() => Promise.all([simulator.stop(), snippets.remove(), rm(folder, { recursive: true })]));

  /** `imports`: those of the root module. */
  const clientOf = async (path: string, imports: DynamicModule[] = []) => {
    const { BankClient, BankClientModule } = (await import(path)) as {
      BankClient: Type<BankClient>;
      BankClientModule: Type;
    };
    const module = await Test.createTestingModule({ imports: [...imports, BankClientModule] }).compile();
    return { module, client: module.get(BankClient) };
  };

  it('has a client before and after that bring the same', async () => {
    const values = simulator.env({
      environment: 'production',
      authentication: 'oauth',
      clientCertificate: true,
    });
    const file = async (name: string): Promise<string> => {
      const path = join(folder, name);
      await writeFile(path, values[name].replaceAll('\\n', '\n'));
      return path;
    };
    Object.assign(process.env, values, {
      SERVICE_OAUTH_MTLS: /`SERVICE_OAUTH_MTLS=(true)`/.exec(document.text)?.[1],
      API_URL: values.SERVICE_BASE_URL,
      AUTH_URL: values.SERVICE_AUTH_URL,
      CLIENT_ID: values.SERVICE_CLIENT_ID,
      CLIENT_SECRET: values.SERVICE_CLIENT_SECRET,
      CERT_FILE: await file('SERVICE_TLS_CERTIFICATE'),
      KEY_FILE: await file('SERVICE_TLS_PRIVATE_KEY'),
      CHAIN_FILE: await file('SERVICE_TLS_CHAIN'),
    });
    const old = await clientOf('../helpers/hand-written-client.js');
    const migrated = await clientOf(snippets.path('migrated.module.ts'), [
      ServiceModule.forRoot({ isGlobal: true }),
    ]);
    expect(await migrated.client.banks()).toEqual(await old.client.banks());

    const [{ certificateSubject }] = simulator.apiRequests;
    expect(certificateSubject).toBeDefined();
    const shown = simulator.tokenRequests.map((request) => request.certificateSubject);
    expect(shown).toEqual([certificateSubject, certificateSubject]);

    const http = migrated.module.get(ServiceHttpService, { strict: false });
    const { status, headers } = await http.response('/banks/v1');
    expect([status, headers['content-type']]).toEqual([200, expect.stringContaining('json')]);

    const json = { error_code: 'LIMIT', errors: [{ field: 'page' }] };
    simulator.fail({
      path: '/banks/v1',
      times: 2,
      fault: { status: 422, json, headers: { 'x-limit': '5' } },
    });
    const response = { status: 422, data: json, headers: { 'x-limit': '5' } };
    await expect(old.client.banks()).rejects.toMatchObject({ response });
    await expect(migrated.client.banks()).rejects.toMatchObject({ response });

    simulator.fail({ path: '/banks/v1', times: 1, fault: { status: 503 } });
    await expect(old.client.banks()).rejects.toMatchObject({ response: { status: 503 } });
    simulator.fail({ path: '/banks/v1', times: 1, fault: { status: 503 } });
    expect(await migrated.client.banks()).toHaveLength(10);
    await Promise.all([old.module.close(), migrated.module.close()]);
  });

  it('names variables that there are', () => {
    const asked = new Set<string>();
    readVariables((variable) => void asked.add(variable));
    const named = document.text.replace(/SERVICE_[A-Z_]*\*/g, '').match(/SERVICE_[A-Z_]+[A-Z]/g) ?? [];
    expect(named.filter((name) => !asked.has(name))).toEqual([]);
  });
});
