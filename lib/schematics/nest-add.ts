import { isUtf8 } from 'node:buffer';
import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { addVariables } from './env-example.js';
import { addToMain, findRootModule } from './main-file.js';
import { addPeers, nestVersionIn } from './manifest.js';
import { type PackageManager, packageManagerOf } from './package-manager.js';
import { addModules } from './root-module.js';
import { type TypeScript } from './source-editor.js';
import { addStub } from './stub-test.js';

/** What this needs of the Tree of @angular-devkit/schematics. */
export interface HostFiles {
  exists(path: string): boolean;
  read(path: string): Buffer | null;
  create(path: string, content: string): void;
  overwrite(path: string, content: string): void;
}

/** What this needs of its SchematicContext. */
export interface Context {
  logger: { info(text: string): void; warn(text: string): void };
  addTask(task: { toConfiguration(): { name: string; options: object } }): unknown;
}

export interface NestAddOptions {
  /** The folder of main.ts; `src` by default. */
  sourceRoot?: string;
}

const MODULE_LINES = `    import { ConfigModule } from '@nestjs/config';
    import { ServiceModule } from 'nestjs-service';
    imports: [ConfigModule.forRoot(), ServiceModule.forRoot({ isGlobal: true })],`;
const MAIN_LINES = `    import { ServiceExceptionFilter } from 'nestjs-service';
    app.enableShutdownHooks();
    app.useGlobalFilters(new ServiceExceptionFilter());`;

const next = ({ addDev, run }: PackageManager) =>
  `Next, with an account: fill in .env (see .env.example), then ${run} nestjs-service doctor
Without an account: ${addDev} @peculiar/x509, then ${run} nestjs-service simulator
Step by step: node_modules/nestjs-service/docs/getting-started.md`;

const TEST_LINES = `    import { stubService } from 'nestjs-service/testing';
    const builder = Test.createTestingModule({ imports: [AppModule] });
    stubService(builder);`;

/**
 * `nest add nestjs-service`: adds the peers, the modules, the lines of main.ts, .env.example, and doubles in the
 * test of the whole application, where they are missing.
 * A file that it does not understand stays as it is, and its lines are printed.
 */
export function nestAdd(options: NestAddOptions = {}, load: () => TypeScript | undefined = hostTypeScript) {
  return (files: HostFiles, context: Context): void => {
    const sourceRoot = options.sourceRoot ?? 'src';
    const main = posix.join(sourceRoot, 'main.ts');
    const manager = packageManagerOf(files);
    addToManifest(files, context, manager);
    const example = read(files, '.env.example');
    edit(files, context, '.env.example', addVariables(), () =>
      example === undefined && files.exists('.env.example') ? undefined : addVariables(example),
    );

    const typescript = load();
    const mainText = read(files, main);
    const root = typescript && mainText !== undefined ? findRootModule(typescript, mainText) : undefined;
    const path = root
      ? `${posix.join(sourceRoot, root.specifier).replace(/\.js$/, '')}.ts`
      : posix.join(sourceRoot, 'app.module.ts');
    const moduleText = read(files, path);

    edit(files, context, path, MODULE_LINES, () =>
      typescript && moduleText !== undefined
        ? addModules(typescript, moduleText, root?.className ?? 'AppModule')
        : undefined,
    );
    edit(files, context, main, MAIN_LINES, () =>
      typescript && mainText !== undefined ? addToMain(typescript, mainText, moduleText) : undefined,
    );
    // Made by `nest new` and `nest generate app`: it starts the whole application.
    const test = posix.join(posix.dirname(sourceRoot), 'test/app.e2e-spec.ts');
    const testText = read(files, test);
    edit(files, context, test, TEST_LINES, () =>
      typescript && testText !== undefined ? addStub(typescript, testText) : undefined,
    );
    context.logger.info(next(manager));
  };
}

function edit(
  files: HostFiles,
  context: Context,
  path: string,
  lines: string,
  how: () => string | undefined,
) {
  const text = how();
  if (text !== undefined) return write(files, path, text);
  const why = files.exists(path)
    ? 'is not changed, because its form is not one that this command knows. Add:'
    : 'is not there. Where your application has this code, add:';
  context.logger.warn(`${path} ${why}\n\n${lines}\n`);
}

function addToManifest(files: HostFiles, context: Context, manager: PackageManager): void {
  const text = read(files, 'package.json');
  const installed = read(files, 'node_modules/@nestjs/core/package.json');
  if (!files.exists('package.json')) return;
  const nest = installed
    ? Number.parseInt((JSON.parse(installed) as { version: string }).version, 10)
    : text && nestVersionIn(text);
  if (!text || !nest) {
    return context.logger.warn(
      `The version of NestJS is not known. Install the peer dependencies: ${manager.add} @nestjs/config @nestjs/axios axios class-validator class-transformer`,
    );
  }
  const changed = addPeers(text, nest);
  if (changed === text) return;
  files.overwrite('package.json', changed);
  const task = {
    name: 'node-package',
    options: { command: 'install', quiet: true, hideOutput: true, packageManager: manager.name },
  };
  context.addTask({ toConfiguration: () => task });
}

function write(files: HostFiles, path: string, text: string): void {
  if (!files.exists(path)) files.create(path, text);
  else if (read(files, path) !== text) files.overwrite(path, text);
}

/** Undefined also for a file that is not UTF-8: written again, it would lose characters. */
function read(files: HostFiles, path: string): string | undefined {
  const bytes = files.read(path);
  return bytes && isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}

/** The compiler that the host has. Version 7 has no compiler API; then the lines are printed. */
function hostTypeScript(): TypeScript | undefined {
  try {
    const typescript = createRequire(join(process.cwd(), 'package.json'))(
      'typescript',
    ) as Partial<TypeScript>;
    return typescript.createSourceFile ? (typescript as TypeScript) : undefined;
  } catch {
    return undefined;
  }
}
