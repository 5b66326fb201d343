// The files and functions of lib/ that one warm `banks.list()` enters, by V8's precise coverage of the sources, each a module
// of its own as in an unbundled build.
//
//   node --no-warnings --import ./build/typescript.mjs test/bench/entered.mjs
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';
import { BanksService, ServiceModule } from 'nestjs-service';

const MODES = ['mtls', 'oauth'];
const LIB = new URL('../../lib/', import.meta.url).href;
const WARM_UP = 20;
const SAMPLES = 5;

Logger.overrideLogger(false);

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

/** Resolves to the names of the functions that were called since the last time, by the file that they are in. */
async function takeEntered() {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const entered = new Map();
  for (const { url, functions } of result) {
    if (!url.startsWith(LIB)) continue;
    const names = functions
      .filter(({ ranges }) => ranges[0].count > 0)
      .map((of) => of.functionName || '(anonymous)');
    if (names.length > 0) entered.set(url.slice(LIB.length), names);
  }
  return entered;
}

const functionsOf = (entered) => [...entered.values()].flat().length;

/** Of some calls the one that entered least: a timer of another part may run during one of them. */
async function enteredByCall(banks) {
  for (let call = 0; call < WARM_UP; call += 1) await banks.list();
  const samples = [];
  for (let call = 0; call < SAMPLES; call += 1) {
    await takeEntered();
    await banks.list();
    samples.push(await takeEntered());
  }
  return samples.reduce((least, sample) => (functionsOf(sample) < functionsOf(least) ? sample : least));
}

// In a process of its own: the simulator is made of files of lib/ too.
const service = fork(fileURLToPath(new URL('processes/simulator.mjs', import.meta.url)), MODES);
const [optionsByMode] = await once(service, 'message');

for (const [mode, options] of Object.entries(optionsByMode)) {
  const module = { module: class BenchModule {}, imports: [ServiceModule.forRoot(options)] };
  const context = await NestFactory.createApplicationContext(module, { logger: false });
  const entered = await enteredByCall(context.get(BanksService));
  await context.close();
  console.log(`\n${mode}: ${entered.size} files, ${functionsOf(entered)} functions`);
  for (const [file, names] of [...entered].sort()) console.log(`  ${file}: ${names.join(', ')}`);
}
service.disconnect();
session.disconnect();
