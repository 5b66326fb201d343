import { Injectable, Module, type DynamicModule, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { BanksService, InjectService, ServiceModule } from 'nestjs-service';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { run } from '../run.js';

const OPTIONS = { urls: { sandboxUrl: 'https://127.0.0.1:1' }, appToken: 'a1' };
const forRoot = (name?: string): DynamicModule => ServiceModule.forRoot({ ...OPTIONS, name });

@Injectable()
class Payments {
  constructor(readonly banks: BanksService) {}
}

@Injectable()
class KsaPayments {
  constructor(@InjectService(BanksService, 'ksa') readonly banks: BanksService) {}
}

@Injectable()
class Vault {}

@Module({ providers: [Payments] })
class PaymentsModule {}

@Module({ imports: [forRoot()], exports: [BanksService] })
class BankingModule {}

/** An application for each row of the table, in its order. */
const APPLICATIONS: { imports: (Type | DynamicModule)[]; providers?: Type[] }[] = [
  { imports: [forRoot(), PaymentsModule] },
  { imports: [forRoot()], providers: [KsaPayments] },
  { imports: [forRoot()], providers: [BanksService, Payments] },
  { imports: [BankingModule] },
  {
    imports: [ServiceModule.forRootAsync({ inject: [Vault], useFactory: () => OPTIONS })],
    providers: [Vault],
  },
];

/** The errors of Nest that docs/configuration.md shows are those of this Nest. */
async function main(): Promise<void> {
  const text = await readFile('docs/configuration.md', 'utf8');
  const shown = [...text.matchAll(/^\| `(Nest [^`]+)`/gm)].map(([, message = '']) => message);
  assert.equal(shown.length, APPLICATIONS.length);
  for (const [index, metadata] of APPLICATIONS.entries()) {
    @Module(metadata)
    class AppModule {}
    const starting = NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
    const { message } = await starting.then(
      () => assert.fail('started'),
      (error: Error) => error,
    );
    for (const part of shown[index].split(' … '))
      assert.ok(message.includes(part), `${part} is not in ${message}`);
  }
}

run(main);
