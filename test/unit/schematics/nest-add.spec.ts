import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nestAdd, type Context, type HostFiles } from '../../../lib/schematics/nest-add.js';

const CALLS = 'ConfigModule.forRoot(), ServiceModule.forRoot({ isGlobal: true })';
const HOOKS = '  app.enableShutdownHooks();\n';
const FILTER = '  app.useGlobalFilters(new ServiceExceptionFilter());\n';

/** What `nest new` of NestJS 12 writes. */
function scaffold(type: 'ts' | 'ts-esm', isObserved = false): Record<string, string> {
  const folder = join(process.cwd(), 'node_modules/@nestjs/schematics/dist/lib/application/files', type);
  const read = (file: string): string =>
    readFileSync(join(folder, file), 'utf8')
      .replaceAll(/<% if \(observe\) \{ %>([^]*?)<% \} %>/g, isObserved ? '$1' : '')
      .replaceAll(/<%= name %>/g, 'host');
  return {
    'src/app.module.ts': read('src/app.module.ts'),
    'src/main.ts': read('src/main.ts'),
    'test/app.e2e-spec.ts': read('test/app.e2e-__specFileSuffix__.ts'),
  };
}

const CJS = scaffold('ts');
const ESM = scaffold('ts-esm');
const [MODULE = '', MAIN = '', APPLICATION_TEST = ''] = Object.values(ESM);

/** By file: the lines that come to what `nest new` writes. */
const ADDED: Record<string, string[]> = {
  'src/app.module.ts': [
    "import { ConfigModule } from '@nestjs/config';",
    "import { ServiceModule } from 'nestjs-service';",
    `  imports: [${CALLS}],`,
  ],
  'src/main.ts': [
    "import { ServiceExceptionFilter } from 'nestjs-service';",
    HOOKS.trimEnd(),
    FILTER.trimEnd(),
  ],
  'test/app.e2e-spec.ts': [
    "import { stubService } from 'nestjs-service/testing';",
    '    const builder = Test.createTestingModule({',
    '    });',
    '    stubService(builder);',
    '    const moduleFixture: TestingModule = await builder.compile();',
  ],
};

/** The three files with `change` made to each. */
function each(files: Record<string, string>, change: (text: string) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [path, change(text)]));
}

type Task = Parameters<Context['addTask']>[0];

describe('nest add', () => {
  function host(nest: string, given: Record<string, string> = {}) {
    const files = new Map(
      Object.entries({
        'package.json': JSON.stringify({ dependencies: { '@nestjs/core': nest, zod: '1' } }, null, 2),
        ...ESM,
        ...given,
      }),
    );
    const latin1 = new Set<string>();
    const said: string[] = [];
    const told: string[] = [];
    const tasks: object[] = [];
    const tree: HostFiles = {
      exists: (path) => files.has(path),
      read: (path) =>
        files.has(path) ? Buffer.from(files.get(path)!, latin1.has(path) ? 'latin1' : 'utf8') : null,
      create: (path, content) => void files.set(path, content),
      overwrite: (path, content) => void files.set(path, content),
      root: {
        get subfiles() {
          return [...files.keys()].filter((path) => !path.includes('/'));
        },
      },
    };
    const logger = {
      info: (text: string) => void told.push(text),
      warn: (text: string) => void said.push(text),
    };
    const context = { logger, addTask: (task: Task) => tasks.push(task.toConfiguration()) };
    const run = (options = {}) => nestAdd(options)(tree, context);
    return { files, latin1, said, told, tasks, run };
  }

  it.each([
    ['of NestJS 12', ESM],
    ['of NestJS 12, CommonJS', CJS],
    ['of NestJS 11', each(CJS, (text) => text.replace('void bootstrap()', 'bootstrap()'))],
    [
      'of the first NestJS 11',
      each(CJS, (text) =>
        text
          .replace('import request', 'import * as request')
          .replace(/import \{ App \}.*\n/, '')
          .replace('<App>', '')
          .replace(/\n {2}afterEach[^]*?\n {2}\}\);\n/, ''),
      ),
    ],
    ['with double quotes', each(ESM, (text) => text.replaceAll("'", '"'))],
    ['without semicolons', each(ESM, (text) => text.replaceAll(/;$/gm, ''))],
    ['with the line ends of Windows', each(ESM, (text) => text.replaceAll('\n', '\r\n'))],
    ['with tabs', each(ESM, (text) => text.replaceAll('  ', '\t'))],
    ['with .ts in its imports', each(ESM, (text) => text.replaceAll('.js', '.ts'))],
  ])('adds its lines, and nothing else, to an application %s', (_name, given) => {
    const { files, said, run } = host('^12.0.1', given);
    run();
    expect(said).toEqual([]);
    const inStyle = (line: string): string => {
      const [quoted, ended] = [given['src/main.ts']?.includes('"'), given['src/main.ts']?.includes(';')];
      const text = line.replaceAll("'", quoted ? '"' : "'").replaceAll(';', ended ? ';' : '');
      return given['src/main.ts']?.includes('\t') ? text.replaceAll('  ', '\t') : text;
    };
    for (const [path, lines] of Object.entries(ADDED)) {
      const eol = given[path]?.includes('\r\n') ? '\r\n' : '\n';
      const before = given[path]?.split(eol) ?? [];
      const added = files
        .get(path)
        ?.split(eol)
        .filter((line) => !before.includes(line));
      expect(added).toEqual(lines.map(inStyle));
    }
  });

  it('adds its lines where nest new added @nestjs/observe, and where nest generate added modules', () => {
    const observed = host('^12.0.1', scaffold('ts-esm', true));
    observed.run();
    expect(observed.said).toEqual([]);
    expect(observed.files.get('src/app.module.ts')).toContain(
      'imports: [\n    ConfigModule.forRoot(),\n    ServiceModule.forRoot({ isGlobal: true }),\n    // Distributed',
    );
    expect(observed.files.get('src/main.ts')).toContain(`ObserveInstrument,\n  });\n${HOOKS}${FILTER}`);
    const grown = host('^12.0.1', {
      'src/app.module.ts': MODULE.replace('imports: []', 'imports: [CatsModule, DogsModule]'),
    });
    grown.run();
    expect(grown.files.get('src/app.module.ts')).toContain(`imports: [${CALLS}, CatsModule, DogsModule]`);
  });

  it('finds the root module by the import of main.ts', () => {
    const { files, said, run } = host('^12.0.1', {
      'src/main.ts': MAIN.replace("'./app.module.js'", "'./root.ts'").replace('create(', 'create<App>(\n'),
      'src/root.ts': MODULE,
    });
    run();
    expect(files.get('src/root.ts')).toContain(CALLS);
    expect(files.get('src/app.module.ts')).toBe(MODULE);
    expect(said).toEqual([expect.stringMatching(/^src\/main\.ts is not changed/)]);
  });

  it.each<[string, string, (text: string) => string]>([
    ['the name ServiceModule', 'src/app.module.ts', (text) => text.replaceAll('AppService', 'ServiceModule')],
    ['modules that are joined', 'src/app.module.ts', (text) => text.replace('[]', '[].concat(others)')],
    ['metadata in a variable', 'src/app.module.ts', (text) => text.replace(/\(\{[^]*?\}\)/, '(metadata)')],
    ['a spread', 'src/app.module.ts', (text) => text.replace('({', '({ ...metadata,')],
    ['a decorator of its own', 'src/app.module.ts', (text) => text.replace('@Module', '@OwnModule')],
    ['a second module', 'src/app.module.ts', (text) => `${text}@Module({})\nexport class Other {}\n`],
    ['no array of imports', 'src/app.module.ts', (text) => text.replace('imports: []', 'imports: others')],
    ['imports by their name', 'src/app.module.ts', (text) => text.replace('imports: []', 'imports')],
    ['a key in quotes', 'src/app.module.ts', (text) => text.replace('imports: []', "'imports': []")],
    [
      'a bracket that nothing closes',
      'src/app.module.ts',
      (text) => text.replace('imports: []', 'imports: [(]'),
    ],
    [
      'a filter of its own',
      'src/main.ts',
      (text) => text.replace('(AppModule);', '(AppModule);\n  app.useGlobalFilters(own);'),
    ],
    [
      'a chain',
      'src/main.ts',
      (text) => text.replace(/await Nest.*\)/, '(await NestFactory.create(AppModule)).x()'),
    ],
    [
      'two applications',
      'src/main.ts',
      (text) => text.replace('  await', '  await NestFactory.create(Other);\n  await'),
    ],
    [
      'another adapter',
      'src/main.ts',
      (text) => text.replace('(AppModule', '(AppModule, new FastifyAdapter()'),
    ],
    ['a microservice', 'src/main.ts', (text) => text.replace('.create(', '.createMicroservice(')],
    ['only the shutdown hooks', 'src/main.ts', (text) => text.replace('  await', `${HOOKS}  await`)],
    [
      'an arrow without a block',
      'test/app.e2e-spec.ts',
      (text) =>
        text.replace(
          /beforeEach[^]*?\n {2}\}\);/,
          'const create = () => Test.createTestingModule({ imports: [AppModule] }).compile();',
        ),
    ],
    [
      'a beforeEach without a block',
      'test/app.e2e-spec.ts',
      (text) =>
        text.replace(
          /beforeEach[^]*?\n {2}\}\);/,
          'beforeEach(async () => (app = (await Test.createTestingModule({ imports: [AppModule] }).compile()).createNestApplication()));',
        ),
    ],
    [
      'a builder',
      'test/app.e2e-spec.ts',
      (text) => text.replace('.compile', '.overrideProvider(A).useValue(1).compile'),
    ],
    ['two modules', 'test/app.e2e-spec.ts', (text) => text + text],
    ['a comment around it', 'test/app.e2e-spec.ts', (text) => `/*\n${text}*/\n`],
  ])('leaves a file with %s as it is, and prints its lines', (_name, path, change) => {
    const given = { ...ESM, [path]: change(ESM[path] ?? '') };
    expect(given[path]).not.toBe(ESM[path]);
    const { files, said, run } = host('^12.0.1', given);
    run();
    expect(files.get(path)).toBe(given[path]);
    const lines = ADDED[path]?.slice(0, 1).join('') ?? '';
    expect(said).toEqual([expect.stringContaining(`${path} is not changed`)]);
    expect(said[0]).toContain(lines);
    for (const other of Object.keys(ESM)) if (other !== path) expect(files.get(other)).not.toBe(ESM[other]);
  });

  const GROWN = `import { Module, type DynamicModule } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import 'side-effect';
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
      envFilePath: ['.env'],
    }),
    database,
    Other.forRootAsync({ imports: [ConfigModule], useFactory: (c: ConfigService) => ({ url: \`[\${c.get('[')}\` }) }),
  ],
  exports: [],
})
export class AppModule {
  configure(): void {}
}
`;

  it('inserts into the imports of a module that has grown, and adds no second ConfigModule', () => {
    const { files, said, run } = host('^12.0.1', { 'src/app.module.ts': GROWN });
    run();
    const text = files.get('src/app.module.ts') ?? '';
    const added = text.split('\n').filter((line) => !GROWN.split('\n').includes(line));
    expect(added).toEqual([
      "import { ServiceModule } from 'nestjs-service';",
      '    ServiceModule.forRoot({ isGlobal: true }),',
    ]);
    expect(text).toContain("} from './options';\nimport { ServiceModule }");
    expect(text).toContain(
      '  imports: [\n    ServiceModule.forRoot({ isGlobal: true }),\n    ConfigModule.forRoot({',
    );
    expect(said).toEqual([]);
  });

  it.each([
    [
      'on lines',
      MODULE.replace(/\s*imports: \[\],/, ''),
      '@Module({\n  imports: [ConfigModule.forRoot(), ServiceModule',
    ],
    [
      'in one line',
      MODULE.replace(/\{\s*imports[^]*\}\)/, '{})'),
      '@Module({ imports: [ConfigModule.forRoot(), ServiceModule',
    ],
    [
      'in a comment',
      MODULE.replace('imports: []', '/* imports: [] */'),
      '@Module({\n  imports: [ConfigModule.forRoot(), ',
    ],
  ])('adds imports to a module without them, %s', (_, given, expected) => {
    const { files, said, run } = host('^12.0.1', { 'src/app.module.ts': given });
    expect(given).not.toBe(MODULE);
    run();
    expect(files.get('src/app.module.ts')).toContain(expected);
    expect(files.get('src/app.module.ts')).toContain('.forRoot({ isGlobal: true })],');
    expect(said).toEqual([]);
  });

  it('adds no ConfigModule where package.json had @nestjs/config: the application has it in another module', () => {
    const manifest = { dependencies: { '@nestjs/core': '^12.0.1', '@nestjs/config': '^12.0.0' } };
    const { files, said, run } = host('', { 'package.json': JSON.stringify(manifest) });
    run();
    expect(files.get('src/app.module.ts')).toContain('imports: [ServiceModule.forRoot({ isGlobal: true })],');
    expect(files.get('src/app.module.ts')).not.toContain('ConfigModule');
    expect(said).toEqual([]);
  });

  it('prints only what is missing', () => {
    const { said, run } = host('^12.0.1', {
      'src/app.module.ts': GROWN.replace('  imports: [', '  ...more,\n  imports: ['),
      'src/main.ts': MAIN.replace('  await', `${HOOKS}  app.useGlobalPipes(new ValidationPipe());\n  await`),
    });
    run();
    expect(said).toEqual([
      expect.stringMatching(/^src\/app\.module\.ts is not changed[^]*imports: \[ServiceModule\.forRoot/),
      expect.stringMatching(/^src\/main\.ts is not changed[^]*useGlobalFilters/),
    ]);
    expect(said.join('')).not.toMatch(/ConfigModule|enableShutdownHooks/);
  });

  it('prints lines that fit: the name of the application, and no filter where there is nothing to answer', () => {
    const printed = (main: string) => {
      const { said, run } = host('^12.0.1', { 'src/main.ts': main });
      run();
      return said;
    };
    const named = MAIN.replace('const app =', 'const server: App =').replace('await app', 'await server');
    expect(printed(named)).toEqual([
      expect.stringMatching(/ {4}server\.enableShutdownHooks\(\);\n {4}server\.useGlobalFilters\(/),
    ]);
    const context = MAIN.replace('.create(', '.createApplicationContext(').replace('const app', 'let app');
    const [lines, ...others] = printed(context);
    expect([lines, others]).toEqual([expect.stringMatching(/\n\n {4}app\.enableShutdownHooks\(\);\n$/), []]);
    expect(printed(context.replace('  await app', `${HOOKS}  await app`))).toEqual([]);
  });

  it('says to take an application, where it is run for a library', () => {
    const projects = {
      shared: { type: 'library', sourceRoot: 'libs/shared/src' },
      host: { type: 'application', sourceRoot: 'apps/host/src' },
    };
    const { files, said, told, run } = host('^12.0.1', { 'nest-cli.json': JSON.stringify({ projects }) });
    run({ sourceRoot: 'libs/shared/src' });
    expect(said).toEqual([
      'libs/shared/src is a library. ServiceModule goes into the application that uses it, once: nest add nestjs-service --project host',
    ]);
    expect([told, files.has('.env.example')]).toEqual([[], false]);
    run({ sourceRoot: 'apps/host/src' });
    expect(said).toContainEqual(expect.stringMatching(/^apps\/host\/src\/main\.ts is not there/));
  });

  it.each([
    'env-example',
    'env-example-relational',
    '.env.dist',
    '.env.sample',
    'example.env',
    '.env.template',
  ])('makes no .env.example beside %s, and prints its lines', (name) => {
    const { files, said, told, run } = host('^12.0.1', { [name]: 'PORT=3000\n' });
    run();
    expect([files.has('.env.example'), files.get(name)]).toEqual([false, 'PORT=3000\n']);
    expect(said).toEqual([
      expect.stringMatching(/ is left to you, because of its name[^]*SERVICE_APP_TOKEN=/),
    ]);
    expect(said[0]?.startsWith(name)).toBe(true);
    expect(told[0]).toContain(`fill in .env (see ${name})`);
    const filled = host('^12.0.1', { [name]: '# SERVICE_APP_TOKEN=\n' });
    filled.run();
    expect([filled.files.has('.env.example'), filled.said]).toEqual([false, []]);
  });

  it.each([
    ['^11.0.1', '^4.0.0', '^0.14.0'],
    ['^12.0.1', '^12.0.0', '^0.15.0'],
  ])('on NestJS %s adds the modules of Nest in %s, and installs them', (nest, modules, validator) => {
    const { files, tasks, said, run } = host(nest);
    run();
    const { dependencies } = JSON.parse(files.get('package.json')!) as {
      dependencies: Record<string, string>;
    };
    expect(dependencies).toMatchObject({
      '@nestjs/config': modules,
      '@nestjs/axios': modules,
      axios: '^1.18.0',
      'class-validator': validator,
    });
    expect(Object.keys(dependencies).at(-1)).toBe('zod');
    expect(tasks).toMatchObject([
      {
        name: 'node-package',
        options: { command: 'install', packageManager: 'npm', quiet: true, hideOutput: true },
      },
    ]);
    expect(files.get('src/app.module.ts')).toContain(CALLS);
    expect(files.get('src/main.ts')).toContain(FILTER);
    expect(files.get('.env.example')).toMatch(
      /\nSERVICE_ENVIRONMENT=sandbox\nSERVICE_AUTHENTICATION=app-token\nSERVICE_SANDBOX_URL=\nSERVICE_APP_TOKEN=\n$/,
    );
    expect(said).toEqual([]);
  });

  it.each([
    ['yarn', ['yarn.lock', 'pnpm-lock.yaml']],
    ['pnpm', ['pnpm-lock.yaml']],
    ['bun', ['bun.lock']],
    ['bun', ['bun.lockb']],
    ['npm', ['package-lock.json']],
  ])('installs with %s, as nest itself does, where there is %j', (packageManager, locks) => {
    const { tasks, run } = host('^12.0.1', Object.fromEntries(locks.map((file) => [file, ''])));
    run();
    expect(tasks).toMatchObject([{ options: { packageManager } }]);
  });

  it.each([
    ['npm', 'package-lock.json', 'npm i -D @peculiar/x509', 'npx'],
    ['yarn', 'yarn.lock', 'yarn add -D @peculiar/x509', 'yarn'],
    ['pnpm', 'pnpm-lock.yaml', 'pnpm add -D @peculiar/x509', 'pnpm exec'],
    ['bun', 'bun.lock', 'bun add -d @peculiar/x509', 'bunx'],
  ])('with %s prints its commands', (_name, lock, install, runner) => {
    const { told, run } = host('^12.0.1', { [lock]: '' });
    run();
    expect(told[0]).toContain(`then ${runner} nestjs-service doctor\n`);
    expect(told[0]).toContain(`: ${install}, then ${runner} nestjs-service simulator\n`);
    const unknown = host('latest', { [lock]: '' });
    unknown.run();
    expect(unknown.said[0]).toContain(`: ${install.split(' ').slice(0, 2).join(' ')} @nestjs/config `);
  });

  it('keeps the line ends of Windows and the indentation', () => {
    const manifest = '{\r\n\t"devDependencies": {\r\n\t\t"@nestjs/core": "^12.0.0"\r\n\t}\r\n}\r\n';
    const { files, run } = host('', { 'package.json': manifest, '.env.example': 'PORT=3000\r\n' });
    run();
    for (const path of ['package.json', '.env.example']) {
      expect(files.get(path)?.replaceAll('\r\n', '')).not.toMatch(/\n/);
    }
    expect(files.get('package.json')).toContain('\r\n\t"dependencies": {\r\n\t\t"@nestjs/axios": "^12.0.0",');
    expect(files.get('.env.example')).toMatch(/^PORT=3000\r\n\r\n# nestjs-service.*\r\n/);
    const flat = host('', { 'package.json': '{"dependencies":{"@nestjs/core":"12.0.0"}}' });
    flat.run();
    expect(flat.files.get('package.json')).toContain('\n  "dependencies": {\n    "@nestjs/axios"');
  });

  it.each([
    ['src/main.ts', /^src\/main\.ts is not changed[^]*useGlobalFilters/],
    ['src/app.module.ts', /^src\/app\.module\.ts is not changed[^]*ServiceModule\.forRoot/],
    ['.env.example', /^\.env\.example is not changed[^]*SERVICE_APP_TOKEN=/],
    ['package.json', /Install the peer dependencies: npm i @nestjs\/config/],
  ])('leaves %s as it is where that is not UTF-8, and prints the lines', (path, lines) => {
    const { files, latin1, said, run } = host('^12.0.1', { '.env.example': '' });
    const before = `${files.get(path)}// caf\u00e9\n`;
    files.set(path, before);
    latin1.add(path);
    run();
    expect(files.get(path)).toBe(before);
    expect(said).toEqual([expect.stringMatching(lines)]);
  });

  it('reads a package.json with a byte order mark, and keeps the mark', () => {
    const { files, said, run } = host('^12.0.1');
    files.set('package.json', `\uFEFF${files.get('package.json')}`);
    run();
    expect(files.get('package.json')).toMatch(/^\uFEFF\{\n[^]*"@nestjs\/axios": "\^12\.0\.0"/);
    expect(said).toEqual([]);
  });

  it('goes by the version that is installed; says so where there is none', () => {
    const installed = { 'node_modules/@nestjs/core/package.json': '{"version":"11.1.0"}' };
    const one = host('latest', installed);
    one.run();
    expect(one.files.get('package.json')).toContain('"@nestjs/axios": "^4.0.0"');
    const without: Record<string, string>[] = [{}, { 'package.json': '{}' }];
    for (const given of without) {
      const { tasks, said, run } = host('latest', given);
      run();
      expect([tasks, said]).toEqual([
        [],
        [expect.stringMatching(/version of NestJS is not known.*npm i @nestjs/)],
      ]);
    }
    const none = host('');
    none.files.delete('package.json');
    none.run();
    expect([none.tasks, none.said, none.files.has('package.json')]).toEqual([[], [], false]);
  });

  it('changes the test of the application where there is one', () => {
    const { files, said, run } = host('^12.0.1');
    run();
    expect(files.get('test/app.e2e-spec.ts')).toContain('stubService(builder);');
    expect(said).toEqual([]);
    const other = host('^12.0.1', { 'test/app.e2e-spec.ts': 'export {};\n' });
    other.run();
    expect(other.said).toEqual([expect.stringMatching(/^test\/app\.e2e-spec\.ts is not changed/)]);
  });

  it('prints the lines of that test where there is none', () => {
    const { files, said, run } = host('^12.0.1');
    files.delete('test/app.e2e-spec.ts');
    run();
    expect(said).toEqual([
      expect.stringMatching(/^test\/app\.e2e-spec\.ts is not there[^]*stubService\(builder\);/),
    ]);
    expect(files.has('test/app.e2e-spec.ts')).toBe(false);
  });

  it('changes one project of several, with its test', () => {
    const { files, said, run } = host('^12.0.1', {
      'apps/second/src/main.ts': MAIN.replaceAll('AppModule', 'SecondModule').replace('./app.', './second.'),
      'apps/second/src/second.module.ts': MODULE.replaceAll('App', 'Second').replaceAll(
        './app.',
        './second.',
      ),
      'apps/second/test/app.e2e-spec.ts': APPLICATION_TEST,
    });
    const first = ['src/main.ts', 'src/app.module.ts', 'test/app.e2e-spec.ts'];
    const before = first.map((path) => files.get(path));
    run({ sourceRoot: 'apps/second/src' });
    expect(files.get('apps/second/src/main.ts')).toContain(FILTER);
    expect(files.get('apps/second/src/second.module.ts')).toContain(CALLS);
    expect(files.get('apps/second/test/app.e2e-spec.ts')).toContain('stubService(builder);');
    expect(first.map((path) => files.get(path))).toEqual(before);
    expect(said).toEqual([]);
  });

  it('changes main.ts beside package.json where the source root is empty', () => {
    const { files, said, run } = host('^12.0.1', { 'main.ts': MAIN, 'app.module.ts': MODULE });
    run({ sourceRoot: '' });
    expect(files.get('main.ts')).toContain(FILTER);
    expect([files.get('src/main.ts'), said]).toEqual([MAIN, []]);
  });

  it('says what to do next, with an account and without', () => {
    const { told, run } = host('^12.0.1');
    run();
    expect(told).toEqual([expect.stringMatching(/\.env\.example[^]*doctor\n[^]*nestjs-service simulator\n/)]);
  });

  it('changes nothing the second time', () => {
    const { files, tasks, said, run } = host('^12.0.1', { '.env.example': 'PORT=3000' });
    run();
    const before = Object.fromEntries(files);
    run();
    expect(Object.fromEntries(files)).toEqual(before);
    expect([tasks.length, said]).toEqual([1, []]);
    expect(before['.env.example']).toMatch(/^PORT=3000\n\n# nestjs-service/);
  });
});
