// A jest that runs ES modules gets the package too. Below Node 24.9 it cannot require those of NestJS 12.
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const jest = createRequire(import.meta.url).resolve('jest/bin/jest');
const folder = join(import.meta.dirname, 'jest');
mkdirSync(folder, { recursive: true });
writeFileSync(
  join(folder, 'banks.test.js'),
  `import { Test } from '@nestjs/testing';
  import { BanksService, ServiceModule } from 'nestjs-service';
  import { stubService } from 'nestjs-service/testing';

  it('lists banks', async () => {
    const builder = Test.createTestingModule({ imports: [ServiceModule.forRoot()] });
    stubService(builder);
    const module = await builder.compile();
    expect(await module.get(BanksService).list()).toHaveLength(2);
    await module.close();
  });`,
);
const args = ['--no-warnings', '--experimental-vm-modules', jest, '--ci', '--rootDir', folder];
spawn(process.execPath, args, { stdio: 'inherit' }).once('exit', (code) => {
  rmSync(folder, { recursive: true });
  process.exitCode = code ?? 1;
});
