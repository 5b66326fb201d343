import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, untilListening } from './ports.mjs';
import { firstCall } from './readme.mjs';
import { startRegistry } from './registry.mjs';
import { runBounded, runUntil } from './run-bounded.mjs';

const REPOSITORY = join(import.meta.dirname, '../..');
/** What `nest add` may change. */
const FILES = ['package.json', 'package-lock.json', '.env.example', 'src/app.module.ts'];

/**
 * Does what docs/getting-started.md says under "The first call", from an empty folder, with the commands as they are
 * written there. As checks to run in order, each needed by the next; `end()` ends what still runs.
 */
export async function gettingStartedChecks({ folder, tarball }) {
  const steps = await firstCall();
  const processes = [];
  let registry;
  let environment = {
    npm_config_prefer_offline: 'true',
    npm_config_yes: 'true',
    // Of the simulator, whose certificates nobody needs later.
    XDG_DATA_HOME: join(folder, 'data'),
  };
  let port;
  let cwd = folder;
  const shell = (command, run, options) =>
    run('sh', ['-c', command], { cwd, env: environment, timeoutMs: 400_000, ...options });
  const read = () => Promise.all(FILES.map((file) => readFile(join(cwd, file), 'utf8')));
  const keepRunning = async (command, ready, env) => {
    processes.push(
      await shell(command, runUntil, { ready, timeoutMs: 120_000, env: { ...environment, ...env } }),
    );
  };

  const forms = [
    [/^cd (\w+)$/, (_command, name) => void (cwd = join(cwd, name))],
    // Free ports: those of the guide may be taken.
    [/^npx nestjs-service simulator$/, (command) => keepRunning(`exec ${command} --port 0`, 'Requests:\n')],
    [/^npm start\b/, (command) => startApplication(command)],
    [/^curl http:\/\/127\.0\.0\.1:3000(\/\w+)$/, (_command, path) => call(path)],
  ];

  async function startApplication(command) {
    await keepRunning(command, 'successfully started', { PORT: String(port) });
    await untilListening(port);
  }

  async function call(path) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(30_000) });
    assert.equal(answer.status, 200);
    assert.equal((await answer.json()).length, 10);
    assert.ok(processes.some(({ output }) => output().includes('GET /banks/v1 200')));
  }

  async function follow(command) {
    for (const [form, run] of forms) {
      const match = form.exec(command);
      if (match) return run(command, ...match.slice(1));
    }
    return shell(command, runBounded);
  }

  async function checkAdded() {
    const before = await read();
    const [manifest, , , module] = before;
    const { dependencies } = JSON.parse(manifest);
    assert.match(dependencies['@nestjs/config'], /^\^12/);
    assert.match(module, /ConfigModule\.forRoot\(\), ServiceModule\.forRoot\(\{ isGlobal: true \}\)\]/);
    const output = await shell('npx nest add nestjs-service', runBounded);
    assert.deepEqual(await read(), before);
    await addPrinted(output);
  }

  /** As a person does it. */
  async function addPrinted(output) {
    const linesFor = (file) =>
      new RegExp(`Add to ${file}:\\n *\\n +(import .*)\\n *\\n([^]*?)\\n *\\n`).exec(output);
    const edit = async (file, place, change) => {
      const [, line, lines] = linesFor(file);
      const text = await readFile(join(cwd, file), 'utf8');
      assert.match(text, place);
      await writeFile(join(cwd, file), `${line}\n${text.replace(place, (found) => change(found, lines))}`);
    };
    await edit('src/main.ts', / *await app\.listen/, (found, lines) => `${lines}\n${found}`);
    await edit('test/app.e2e-spec.ts', /const moduleFixture[^]*?\.compile\(\);/, (_found, lines) =>
      lines.trim(),
    );
  }

  const toCheck = ({ command, file, text }) => ({
    name: command ?? file,
    needed: true,
    run: command
      ? () => follow(command)
      : async () => {
          // It is there already, except where the guide makes a new one.
          await readFile(join(cwd, file));
          await writeFile(join(cwd, file), text);
        },
  });

  const checks = [
    {
      name: 'a registry that has the package, and a free port',
      needed: true,
      run: async () => {
        await mkdir(folder, { recursive: true });
        const manifest = JSON.parse(await readFile(join(REPOSITORY, 'package.json'), 'utf8'));
        const upstream = (await shell('npm config get registry 2>/dev/null', runBounded)).trim();
        registry = await startRegistry({ manifest, tarball, upstream });
        environment = { ...environment, npm_config_registry: registry.url };
        port = await freePort();
      },
    },
    ...steps.flatMap((step) => {
      const check = toCheck(step);
      if (step.command !== 'npx nest add nestjs-service') return [check];
      return [check, { name: 'the same again', needed: true, run: checkAdded }];
    }),
  ];
  const end = async () => {
    // The application before the simulator.
    for (const process of processes.reverse()) await process.end();
    await registry?.stop();
  };
  return { checks, end };
}
