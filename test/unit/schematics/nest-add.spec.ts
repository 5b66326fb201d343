import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { addToMain, findRootModule } from '../../../lib/schematics/main-file.js';
import { nestAdd, type Context, type HostFiles } from '../../../lib/schematics/nest-add.js';
import { addModules } from '../../../lib/schematics/root-module.js';
import { addStub } from '../../../lib/schematics/stub-test.js';

const NEST = "import { Module } from '@nestjs/common';\n";
const BOTH =
  "import { ConfigModule } from '@nestjs/config';\nimport { ServiceModule } from 'nestjs-service';\n";
const CALLS = 'ConfigModule.forRoot(), ServiceModule.forRoot({ isGlobal: true })';
const CLASS = 'export class AppModule {}\n';

describe('the root module', () => {
  it.each([
    ['an empty array', `@Module({ imports: [] })`, `@Module({ imports: [${CALLS}] })`],
    [
      'no imports',
      `@Module({\n  providers: [],\n})`,
      `@Module({\n  imports: [${CALLS}],\n  providers: [],\n})`,
    ],
    ['nothing at all', `@Module({})`, `@Module({ imports: [${CALLS}] })`],
    ['one element', `@Module({ imports: [A] })`, `@Module({ imports: [A, ${CALLS}] })`],
    [
      'elements on lines of their own, with a comma after the last',
      `@Module({\n  imports: [\n    A,\n    B.forRoot({ x: 1 }),\n  ],\n})`,
      `@Module({\n  imports: [\n    A,\n    B.forRoot({ x: 1 }),\n    ConfigModule.forRoot(),\n    ServiceModule.forRoot({ isGlobal: true }),\n  ],\n})`,
    ],
    ['a spread', `@Module({ imports: [...others] })`, `@Module({ imports: [...others, ${CALLS}] })`],
    ['a comment', `@Module({ imports: [A /* a */] })`, `@Module({ imports: [A, ${CALLS} /* a */] })`],
  ])('with %s gets the two modules', (_name, before, after) => {
    expect(addModules(ts, `${NEST}${before}\n${CLASS}`, 'AppModule')).toBe(
      `${NEST}${BOTH}${after}\n${CLASS}`,
    );
  });

  it('gets only what is missing, by the names that the file has for them', () => {
    const text =
      NEST +
      "import { ConfigModule as Settings } from '@nestjs/config';\n" +
      `@Module({ imports: [Settings.forRoot({ isGlobal: true })] })\n${CLASS}`;
    const after = addModules(ts, text, 'AppModule');
    expect(after).toContain(
      'imports: [Settings.forRoot({ isGlobal: true }), ServiceModule.forRoot({ isGlobal: true })]',
    );
    expect(after).not.toContain('import { ConfigModule }');
  });

  it('keeps a ServiceModule as it is', () => {
    const text = `${NEST}${BOTH}@Module({ imports: [ConfigModule.forRoot(), ServiceModule.forRoot()] })\n${CLASS}`;
    expect(addModules(ts, text, 'AppModule')).toBe(text);
  });

  it('keeps double quotes, no semicolons, and the line ends of Windows', () => {
    const text = `import { Module } from "@nestjs/common"\r\n\r\n@Module({\r\n  providers: []\r\n})\r\n${CLASS.trim()}`;
    const after = addModules(ts, text, 'AppModule');
    expect(after).toContain('import { ServiceModule } from "nestjs-service"\r\n');
    expect(after).toContain(`@Module({\r\n  imports: [${CALLS}],\r\n  providers: []`);
    expect(after?.replaceAll('\r\n', '')).not.toContain('\n');
  });

  it.each([
    ['imports in a variable', `@Module({ imports })`],
    ['imports that are joined', `@Module({ imports: [A].concat(B) })`],
    ['metadata in a variable', `@Module(metadata)`],
    ['metadata with a spread', `@Module({ ...metadata })`],
    ['a decorator of its own', `@OwnModule({ imports: [] })`],
  ])('with %s is not understood', (_name, decorator) => {
    expect(addModules(ts, `${NEST}${decorator}\n${CLASS}`, 'AppModule')).toBeUndefined();
  });

  it('is not understood where the name is of something else, or the class is not there', () => {
    const own = "import { ConfigModule } from './config.module.js';\n";
    expect(
      addModules(ts, `${NEST}${own}@Module({ imports: [ConfigModule] })\n${CLASS}`, 'AppModule'),
    ).toBeUndefined();
    expect(addModules(ts, `${NEST}@Module({ imports: [] })\n${CLASS}`, 'OtherModule')).toBeUndefined();
  });
});

const MAIN = [
  "import { NestFactory } from '@nestjs/core';",
  "import { AppModule } from './app.module.js';",
  '',
  'async function bootstrap() {',
  '  const app = await NestFactory.create(AppModule);',
  '  await app.listen(3000);',
  '}',
  'void bootstrap();',
  '',
].join('\n');
const HOOKS = '  app.enableShutdownHooks();\n';
const FILTER = '  app.useGlobalFilters(new ServiceExceptionFilter());\n';

describe('main.ts', () => {
  it('gets the shutdown hooks and the filter, and nothing that changes what its routes get', () => {
    expect(addToMain(ts, MAIN)).toBe(
      MAIN.replace(
        "app.module.js';\n",
        "app.module.js';\nimport { ServiceExceptionFilter } from 'nestjs-service';\n",
      ).replace('(AppModule);\n', `(AppModule);\n${HOOKS}${FILTER}`),
    );
  });

  it('gets only those that neither it nor the root module has', () => {
    const root = 'const providers = [{ provide: APP_FILTER, useClass: ServiceExceptionFilter }];';
    expect(addToMain(ts, MAIN, root)).toBe(MAIN.replace('(AppModule);\n', `(AppModule);\n${HOOKS}`));
  });

  it("has the filter after the host's own, because Nest asks the last one first", () => {
    const own = '  app.useGlobalFilters(new CatchAll());\n';
    const text = MAIN.replace('  await app.listen', `${own}  await app.listen`);
    expect(addToMain(ts, text)).toContain(`${own}${HOOKS}${FILTER}`);
  });

  it('imports into the list that it has', () => {
    const text = `import { ServiceError } from 'nestjs-service';\n${MAIN}`;
    expect(addToMain(ts, text)).toContain(
      "import { ServiceError, ServiceExceptionFilter } from 'nestjs-service';",
    );
  });

  it.each([
    [
      'a chain',
      MAIN.replace(
        'await NestFactory.create(AppModule)',
        '(await NestFactory.create(AppModule)).enableCors()',
      ),
    ],
    [
      'two applications',
      MAIN.replace('  await app', '  const b = await NestFactory.create(AppModule);\n  await app'),
    ],
    ['no application', 'export {};\n'],
    ['a microservice', MAIN.replace('.create(', '.createMicroservice(')],
  ])('with %s is not understood', (_name, text) => {
    expect(addToMain(ts, text)).toBeUndefined();
  });

  it('names the root module', () => {
    const renamed = MAIN.replace('{ AppModule }', '{ Root as AppModule }').replace(
      './app.module.js',
      './root',
    );
    expect(findRootModule(ts, renamed)).toEqual({ className: 'Root', specifier: './root' });
    expect(findRootModule(ts, MAIN.replace("'./app.module.js'", "'@org/app'"))).toBeUndefined();
  });
});

const APPLICATION_TEST = [
  "import { Test, TestingModule } from '@nestjs/testing';",
  '',
  'beforeEach(async () => {',
  '  const moduleFixture: TestingModule = await Test.createTestingModule({',
  '    imports: [AppModule],',
  '  }).compile();',
  '});',
  '',
].join('\n');

describe('the test of the whole application', () => {
  it('gets doubles of the services', () => {
    const after = [
      "import { Test, TestingModule } from '@nestjs/testing';",
      "import { stubService } from 'nestjs-service/testing';",
      '',
      'beforeEach(async () => {',
      '  const builder = Test.createTestingModule({',
      '    imports: [AppModule],',
      '  });',
      '  stubService(builder);',
      '  const moduleFixture: TestingModule = await builder.compile();',
      '});',
      '',
    ].join('\n');
    expect(addStub(ts, APPLICATION_TEST)).toBe(after);
    expect(addStub(ts, after)).toBe(after);
  });

  it.each([
    ['a builder', APPLICATION_TEST.replace('.compile', '.overrideProvider(A).useValue(1).compile')],
    ['two modules', APPLICATION_TEST + APPLICATION_TEST],
    ['none', 'export {};\n'],
  ])('with %s is not understood', (_name, other) => {
    expect(addStub(ts, other)).toBeUndefined();
  });
});

type Task = Parameters<Context['addTask']>[0];

describe('nest add', () => {
  function host(nest: string, given: Record<string, string> = {}) {
    const files = new Map(
      Object.entries({
        'package.json': JSON.stringify({ dependencies: { '@nestjs/core': nest, zod: '1' } }, null, 2),
        'src/main.ts': MAIN,
        'src/app.module.ts': `${NEST}@Module({ imports: [] })\n${CLASS}`,
        'test/app.e2e-spec.ts': APPLICATION_TEST,
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
    };
    const logger = {
      info: (text: string) => void told.push(text),
      warn: (text: string) => void said.push(text),
    };
    const context = { logger, addTask: (task: Task) => tasks.push(task.toConfiguration()) };
    const run = (load = (): typeof ts | undefined => ts, options = {}) =>
      nestAdd(options, load)(tree, context);
    return { files, latin1, said, told, tasks, run };
  }

  it.each([
    ['^11.0.1', '^4.0.0'],
    ['^12.0.1', '^12.0.0'],
  ])('on NestJS %s adds the modules of Nest in %s, and installs them', (nest, modules) => {
    const { files, tasks, said, run } = host(nest);
    run();
    const { dependencies } = JSON.parse(files.get('package.json')!) as {
      dependencies: Record<string, string>;
    };
    expect(dependencies).toMatchObject({
      '@nestjs/config': modules,
      '@nestjs/axios': modules,
      axios: '^1.18.0',
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
    expect(files.get('.env.example')).toContain('SERVICE_APP_TOKEN=');
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
      'apps/second/src/main.ts': MAIN.replace('./app.module.js', './second.module'),
      'apps/second/src/second.module.ts': `${NEST}@Module({ imports: [] })\n${CLASS}`,
      'apps/second/test/app.e2e-spec.ts': APPLICATION_TEST,
    });
    const first = ['src/main.ts', 'src/app.module.ts', 'test/app.e2e-spec.ts'];
    const before = first.map((path) => files.get(path));
    run(undefined, { sourceRoot: 'apps/second/src' });
    expect(files.get('apps/second/src/main.ts')).toContain(FILTER);
    expect(files.get('apps/second/src/second.module.ts')).toContain(CALLS);
    expect(files.get('apps/second/test/app.e2e-spec.ts')).toContain('stubService(builder);');
    expect(first.map((path) => files.get(path))).toEqual(before);
    expect(said).toEqual([]);
  });

  it('says what to do next, with an account and without', () => {
    const { told, run } = host('^12.0.1');
    run();
    expect(told).toEqual([expect.stringMatching(/\.env\.example[^]*doctor\n[^]*nestjs-service simulator\n/)]);
  });

  it('changes nothing the second time', () => {
    const { files, tasks, run } = host('^12.0.1', { '.env.example': 'PORT=3000' });
    run();
    const before = Object.fromEntries(files);
    run();
    expect(Object.fromEntries(files)).toEqual(before);
    expect(tasks).toHaveLength(1);
    expect(before['.env.example']).toMatch(/^PORT=3000\n\n# nestjs-service/);
  });

  it('leaves files that it does not understand, and prints their lines', () => {
    const given = {
      'src/main.ts': 'start(AppModule);\n',
      'src/app.module.ts': `${NEST}@Module(metadata)\n${CLASS}`,
    };
    const { files, said, run } = host('^12.0.1', given);
    run();
    expect(Object.fromEntries(files)).toMatchObject(given);
    expect(said[0]).toMatch(
      /^src\/app\.module\.ts is not changed[^]*ServiceModule\.forRoot\(\{ isGlobal: true \}\)/,
    );
    expect(said[1]).toMatch(/^src\/main\.ts is not changed[^]*ServiceExceptionFilter\(\)/);
  });

  it('prints the lines where the host has no TypeScript that can parse', () => {
    const { files, said, run } = host('^12.0.1');
    run(() => undefined);
    expect(files.get('src/main.ts')).toBe(MAIN);
    expect(said).toHaveLength(3);
  });
});
