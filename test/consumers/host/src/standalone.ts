import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { BanksService, ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { run } from './run.js';

@Module({ imports: [ServiceModule.forRoot()] })
class JobModule {}

/** A command or a cron job: an application without a server, and without shutdown hooks. */
async function job(): Promise<void> {
  const app = await NestFactory.createApplicationContext(JobModule, { logger: ['error', 'warn'] });
  const banks = await app.get(BanksService).list<unknown[]>();
  await app.close();
  console.log(`${banks.length} banks`);
}

/** The process of the job ends by itself, while the service keeps its connections open. */
async function main(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  try {
    for (const authentication of ['mtls', 'oauth'] as const) {
      const mode = { environment: 'production', authentication, oauth: true } as const;
      const env = { ...process.env, ...simulator.env(mode) };
      const args = [...process.execArgv, process.argv[1] ?? '', 'job'];
      const output = await promisify(execFile)(process.execPath, args, { env, timeout: 20_000 });
      assert.deepEqual(output, { stdout: '10 banks\n', stderr: '' });
    }
  } finally {
    await simulator.stop();
  }
}

run(process.argv[2] === 'job' ? job : main);
