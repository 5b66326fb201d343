import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nestAdd, type SchematicContext, type HostFiles } from '../../../lib/schematics/nest-add.js';

const CALLS = 'ConfigModule.forRoot(), ServiceModule.forRoot({ isGlobal: true })';
const IMPORTS = [
  "import { ConfigModule } from '@nestjs/config';",
  "import { ServiceModule } from 'nestjs-service';",
];

/** What `nest new` of NestJS 12 writes. */
function scaffold(type: 'ts' | 'ts-esm'): Record<string, string> {
  const folder = join(process.cwd(), 'node_modules/@nestjs/schematics/dist/lib/application/files', type);
  const read = (file: string): string =>
    readFileSync(join(folder, file), 'utf8').replaceAll(/<% if \(observe\) \{ %>[^]*?<% \} %>/g, '');
  return {
    'src/app.module.ts': read('src/app.module.ts'),
    'src/main.ts': read('src/main.ts'),
    'test/app.e2e-spec.ts': read('test/app.e2e-__specFileSuffix__.ts'),
  };
}

const ESM = scaffold('ts-esm');
const [MODULE = '', MAIN = ''] = Object.values(ESM);
const installed = (version: string) => ({
  'node_modules/@nestjs/core/package.json': JSON.stringify({ version }),
});

type Task = Parameters<SchematicContext['addTask']>[0];

describe('nest add', () => {
  afterEach(() => void jest.restoreAllMocks());

  function host(given: Record<string, string> = {}) {
    const manifest = { dependencies: { '@nestjs/core': '^12.0.1', zod: '1' } };
    const files = new Map(
      Object.entries({
        'package.json': JSON.stringify(manifest, null, 2),
        ...installed('12.0.1'),
        ...ESM,
        ...given,
      }),
    );
    const latin1 = new Set<string>();
    const logLines: string[] = [];
    const tasks: object[] = [];
    const tree: HostFiles = {
      exists: (path) => files.has(path),
      read: (path) =>
        files.has(path) ? Buffer.from(files.get(path)!, latin1.has(path) ? 'latin1' : 'utf8') : null,
      create: (path, content) => void files.set(path, content),
      overwrite: (path, content) => void files.set(path, content),
    };
    const context = {
      logger: { info: (text: string) => void logLines.push(text) },
      addTask: (task: Task) => tasks.push(task.toConfiguration()),
    };
    const run = (options = {}) => nestAdd(options)(tree, context);
    return { files, latin1, logLines, tasks, run };
  }

  /** The lines of a file that were not in it before. */
  const added = (before: string, after = '') =>
    after.split(/\r?\n/).filter((line) => !before.split(/\r?\n/).includes(line));

  it.each<[string, string, string[]]>([
    ['of NestJS 12', MODULE, [...IMPORTS, `  imports: [${CALLS}],`]],
    ['of NestJS 11', scaffold('ts')['src/app.module.ts'], [...IMPORTS, `  imports: [${CALLS}],`]],
    [
      'with double quotes, and without semicolons',
      MODULE.replaceAll("'", '"').replaceAll(/;$/gm, ''),
      [...IMPORTS.map((line) => line.replaceAll("'", '"').slice(0, -1)), `  imports: [${CALLS}],`],
    ],
    [
      'with the line ends of Windows',
      MODULE.replaceAll('\n', '\r\n'),
      [...IMPORTS, `  imports: [${CALLS}],`],
    ],
    [
      'without imports',
      MODULE.replace(/\s*imports: \[\],/, ''),
      [...IMPORTS, expect.stringContaining(CALLS) as unknown as string],
    ],
    [
      'with modules',
      MODULE.replace('imports: []', 'imports: [CatsModule]'),
      [...IMPORTS, `  imports: [CatsModule, ${CALLS}],`],
    ],
  ])('adds the modules to a root module %s, and nothing else', async (_name, before, lines) => {
    const { files, run } = host({ 'src/app.module.ts': before });
    await run();
    const after = files.get('src/app.module.ts')!;
    expect(added(before, after).filter((line) => line.trim() !== '')).toEqual(lines);
    expect(after.includes('\r\n')).toBe(before.includes('\r\n'));
    expect(after.replaceAll('\r\n', '').includes('\n')).toBe(!before.includes('\r\n'));
    expect(after.indexOf('ServiceModule }')).toBeLessThan(after.indexOf('@Module'));
  });

  it('adds ServiceModule to a root module that has other imports, without a second ConfigModule', async () => {
    const grown = `import { Module } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import type {
  Options,
} from './options';

// @Module({ imports: [] })
const database = configured() ? First.forRoot({ imports: ['a'] }) : Second.forRoot();

@Module({
  providers: [{ provide: 'x', useFactory: () => ({ imports: [1] }) }],
  imports: [
    ConfigModule.forRoot({
      isGlobal: true, // the one
    }),
    Other.forRootAsync({ imports: [ConfigModule], useFactory: (c: ConfigService) => ({ url: \`[\${c.get('[')}\` }) }),
  ],
})
export class AppModule {}
`;
    const { files, run } = host({ 'src/app.module.ts': grown });
    await run();
    const text = files.get('src/app.module.ts');
    expect(added(grown, text)).toEqual([IMPORTS[1], '    ServiceModule.forRoot({ isGlobal: true }),']);
    expect(text).toContain(`} from './options';\n${IMPORTS[1]}\n`);
    expect(text).toMatch(
      /\n {4}ServiceModule\.forRoot\(\{ isGlobal: true \}\),\n {2}\],\n\}\)\nexport class/,
    );
  });

  it('adds no ConfigModule if package.json had @nestjs/config, because another module imports it', async () => {
    const manifest = { dependencies: { '@nestjs/config': '^12.0.0' } };
    const { files, run } = host({ 'package.json': JSON.stringify(manifest) });
    await run();
    expect(added(MODULE, files.get('src/app.module.ts'))).toEqual([
      IMPORTS[1],
      '  imports: [ServiceModule.forRoot({ isGlobal: true })],',
    ]);
  });

  it.each<[string, Record<string, string>]>([
    ['its imports are no array', { 'src/app.module.ts': MODULE.replace('[]', 'others') }],
    ['its metadata is in a variable', { 'src/app.module.ts': MODULE.replace(/\(\{[^]*?\}\)/, '(metadata)') }],
    ['it has no @Module', { 'src/app.module.ts': '' }],
  ])('does not change the root module, and prints the lines to add, if %s', async (_name, given) => {
    const { files, logLines, run } = host(given);
    await run();
    expect(files.get('src/app.module.ts')).toBe(given['src/app.module.ts']);
    expect(logLines[0]).toBe(
      `Add to src/app.module.ts:\n\n    ${IMPORTS.join('\n    ')}\n\n    imports: [${CALLS}],\n`,
    );
  });

  it('prints the lines to add to the root module if @nestjs/schematics is not installed', async () => {
    jest.spyOn(process, 'cwd').mockReturnValue('/');
    const { files, logLines, run } = host();
    await run();
    expect(files.get('src/app.module.ts')).toBe(MODULE);
    expect(logLines[0]).toContain(`imports: [${CALLS}],`);
  });

  it('prints the lines to add to main.ts and to the test of the application, and the next steps', async () => {
    const { files, logLines, run } = host();
    await run();
    expect(files.get('src/main.ts')).toBe(MAIN);
    expect(logLines).toEqual([
      expect.stringMatching(
        /^Add to src\/main\.ts:\n[^]*enableShutdownHooks\(\);\n +app\.useGlobalFilters\(/,
      ),
      expect.stringMatching(/^Add to test\/app\.e2e-spec\.ts:\n[^]*stubService\(builder\);/),
      expect.stringMatching(/\.env\.example[^]*doctor\n[^]*npm i -D @peculiar\/x509, [^]* simulator\n/),
    ]);
  });

  it('finds the root module by the import in main.ts, in a workspace with several projects', async () => {
    const { files, logLines, run } = host({
      'apps/second/src/main.ts': MAIN.replaceAll('AppModule', 'SecondModule').replace('./app.', './second.'),
      'apps/second/src/second.module.ts': MODULE.replaceAll('App', 'Second'),
      'apps/second/test/app.e2e-spec.ts': '',
    });
    await run({ sourceRoot: 'apps/second/src' });
    expect(files.get('apps/second/src/second.module.ts')).toContain(CALLS);
    expect(files.get('src/app.module.ts')).toBe(MODULE);
    expect(logLines.slice(0, 2).map((text) => text.split('\n')[0])).toEqual([
      'Add to apps/second/src/main.ts:',
      'Add to apps/second/test/app.e2e-spec.ts:',
    ]);
  });

  it.each([
    ['11.1.0', '^4.0.0', '^0.14.0', 'yarn.lock', 'yarn'],
    ['12.0.1', '^12.0.0', '^0.15.0', 'pnpm-lock.yaml', 'pnpm'],
    ['13.0.0', '^12.0.0', '^0.15.0', 'bun.lock', 'bun'],
    ['12.0.1', '^12.0.0', '^0.15.0', 'package-lock.json', 'npm'],
  ])(
    'for NestJS %s adds packages for Nest %s and class-validator %s; with %s, %s installs them',
    async (...row) => {
      const [version, modules, validator, lock, packageManager] = row;
      const { files, tasks, run } = host({ ...installed(version), [lock]: '' });
      await run();
      const { dependencies } = JSON.parse(files.get('package.json')!) as { dependencies: object };
      expect(Object.entries(dependencies)).toEqual([
        ['@nestjs/axios', modules],
        ['@nestjs/config', modules],
        ['@nestjs/core', '^12.0.1'],
        ['axios', '^1.18.0'],
        ['class-validator', validator],
        ['zod', '1'],
      ]);
      expect(tasks).toMatchObject([
        { name: 'node-package', options: { command: 'install', packageManager } },
      ]);
    },
  );

  it('keeps the contents of package.json and its indentation', async () => {
    const manifest = '\uFEFF{\n\t"name": "x",\n\t"devDependencies": { "axios": "1" }\n}';
    const { files, run } = host({ 'package.json': manifest });
    await run();
    const text = files.get('package.json')!;
    expect(text).toContain('\n\t"dependencies": {\n\t\t"@nestjs/axios": "^12.0.0",');
    expect(JSON.parse(text)).toEqual({
      name: 'x',
      devDependencies: { axios: '1' },
      dependencies: { '@nestjs/axios': '^12.0.0', '@nestjs/config': '^12.0.0', 'class-validator': '^0.15.0' },
    });
  });

  it('prints what to install if the version of NestJS is not known', async () => {
    const { files, logLines, tasks, run } = host({ 'yarn.lock': '' });
    files.delete('node_modules/@nestjs/core/package.json');
    await run();
    expect(logLines[0]).toBe('Install: yarn add @nestjs/config @nestjs/axios axios class-validator');
    expect(tasks).toEqual([]);
  });

  it('appends the variables of the first mode to .env.example', async () => {
    const { files, run } = host({ '.env.example': 'PORT=3000\n' });
    await run();
    expect(files.get('.env.example')).toMatch(
      /^PORT=3000\n\n# nestjs-service[^]*\nSERVICE_ENVIRONMENT=sandbox\nSERVICE_AUTHENTICATION=app-token\nSERVICE_SANDBOX_URL=\nSERVICE_APP_TOKEN=\n# .+\nSERVICE_APP_TOKEN_HEADER=\nSERVICE_HTTP_CORRELATION_ID_HEADER=\n$/,
    );
  });

  it.each(['package.json', '.env.example', 'src/app.module.ts'])(
    'refuses a %s that is not UTF-8, so that Nest changes nothing',
    async (path) => {
      const { files, latin1, run } = host({ '.env.example': '' });
      files.set(path, `${files.get(path)}// caf\u00e9\n`);
      latin1.add(path);
      await expect(run()).rejects.toThrow(`${path} is not UTF-8`);
    },
  );

  it('changes nothing when it runs a second time', async () => {
    const { files, tasks, run } = host();
    await run();
    const before = Object.fromEntries(files);
    await run();
    expect(Object.fromEntries(files)).toEqual(before);
    expect(tasks).toHaveLength(1);
  });
});
