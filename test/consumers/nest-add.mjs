import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runBounded } from './run-bounded.mjs';

const NPM = ['--prefer-offline', '--no-audit', '--no-fund'];
/** What the command may change. */
const FILES = ['package.json', '.env.example', 'src/app.module.ts', 'src/main.ts', 'test/app.e2e-spec.ts'];

/** An application as `nest new` of one line makes it, and `nest add nestjs-service`. As checks to run in order. */
export function nestAddChecks({ nest, folder }) {
  const app = join(folder, 'app');
  const run = (command, args, timeoutMs, cwd = app) => runBounded(command, args, { cwd, timeoutMs });
  const bin = (name) => join(app, 'node_modules', '.bin', name);
  const add = () => run(bin('nest'), ['add', 'nestjs-service', '--skip-install'], 180_000);
  const read = () => Promise.all(FILES.map((file) => readFile(join(app, file), 'utf8')));

  return {
    name: `nest-add-${nest}`,
    checks: [
      {
        name: 'install',
        run: async () => {
          await mkdir(folder, { recursive: true });
          const cli = ['--yes', `@nestjs/cli@${nest}`];
          await run('npx', [...cli, 'new', 'app', '--package-manager', 'npm', '--skip-git'], 400_000, folder);
          await run('npm', ['install', ...NPM, '../../nestjs-service.tgz'], 180_000);
        },
      },
      {
        name: 'nest add',
        run: async () => {
          await add();
          const [manifest, , module, main, test] = await read();
          const { dependencies } = JSON.parse(manifest);
          assert.match(dependencies['@nestjs/config'], nest >= 12 ? /^\^12/ : /^\^4/);
          assert.match(module, /imports: \[ConfigModule\.forRoot\(\), ServiceModule\.forRoot\(\)\]/);
          assert.match(main, /enableShutdownHooks[^]*ValidationPipe[^]*ServiceExceptionFilter\(\)/);
          assert.match(test, /stubService\(builder\)/);
        },
      },
      {
        name: 'nest add, again',
        run: async () => {
          const before = await read();
          await add();
          assert.deepEqual(await read(), before);
        },
      },
      ...['build', 'test', 'test:e2e'].map((script) => ({
        name: `npm run ${script}`,
        run: () => run('npm', ['run', script], 120_000),
      })),
    ],
  };
}
