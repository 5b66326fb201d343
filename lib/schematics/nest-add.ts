import { isUtf8 } from 'node:buffer';
import { posix } from 'node:path';
import { GUIDES } from '../version.js';
import { addVariables, isOtherExample } from './env-example.js';
import {
  addPeers,
  isNamed,
  nestVersionIn,
  type PackageManager,
  packageManagerOf,
  projectsOf,
} from './manifest.js';
import { addModules, addStub, addToMain, rootModuleOf, SERVICE_MODULE } from './scaffold.js';

/** What this needs of the Tree of @angular-devkit/schematics. */
export interface HostFiles {
  exists(path: string): boolean;
  read(path: string): Buffer | null;
  create(path: string, content: string): void;
  overwrite(path: string, content: string): void;
  root: { subfiles: readonly string[] };
}

/** What this needs of its SchematicContext. */
export interface Context {
  logger: { info(text: string): void; warn(text: string): void };
  addTask(task: { toConfiguration(): { name: string; options: object } }): unknown;
}

interface NestAddOptions {
  /** The folder of main.ts; `src` by default. */
  sourceRoot?: string;
}

/** What the root module lacks. */
function moduleLines(hasConfig: boolean): string {
  const modules = hasConfig ? SERVICE_MODULE : `ConfigModule.forRoot(), ${SERVICE_MODULE}`;
  return `${hasConfig ? '' : "    import { ConfigModule } from '@nestjs/config';\n"}    import { ServiceModule } from 'nestjs-service';
    imports: [${modules}],`;
}

/** What main.ts lacks. A context answers nobody, and takes no filters. */
function mainLines(main = ''): string {
  const app = /\b(?:const|let)\s+(\w+)[^=;]*=\s*await\s+NestFactory\b/.exec(main)?.[1] ?? 'app';
  const hooks = main.includes('.enableShutdownHooks(') ? [] : [`    ${app}.enableShutdownHooks();`];
  if (/\bNestFactory\.createApplicationContext\b/.test(main)) return hooks.join('');
  const importLine = "    import { ServiceExceptionFilter } from 'nestjs-service';";
  return [importLine, ...hooks, `    ${app}.useGlobalFilters(new ServiceExceptionFilter());`].join('\n');
}

const next = ({ addDev, run }: PackageManager, example: string) =>
  `Next, with an account: fill in .env (see ${example}), then ${run} nestjs-service doctor
Without an account: ${addDev} @peculiar/x509, then ${run} nestjs-service simulator
Step by step: ${GUIDES}/getting-started.md`;

const TEST_LINES = `    import { stubService } from 'nestjs-service/testing';
    const builder = Test.createTestingModule({ imports: [AppModule] });
    stubService(builder);`;

/**
 * `nest add nestjs-service`: adds the peers, the modules, the lines of main.ts, .env.example, and doubles in the
 * test of the whole application, where they are missing.
 * A file that is not as `nest new` writes it stays as it is, and its lines are printed.
 */
export function nestAdd(options: NestAddOptions = {}) {
  return (files: HostFiles, context: Context): void => {
    const sourceRoot = options.sourceRoot ?? 'src';
    const { isLibrary, application } = projectsOf(read(files, 'nest-cli.json') ?? '{}', sourceRoot);
    if (isLibrary) {
      return context.logger.warn(
        `${sourceRoot} is a library. ServiceModule goes into the application that uses it, once: nest add nestjs-service --project ${application}`,
      );
    }
    const manager = packageManagerOf(files);
    const hadConfig = isNamed('@nestjs/config', read(files, 'package.json') ?? '{}');
    addToManifest(files, context, manager);
    const example = addExample(files, context);
    const main = posix.join(sourceRoot, 'main.ts');
    const mainText = read(files, main);
    const root = `${posix.join(sourceRoot, rootModuleOf(mainText ?? '') ?? './app.module')}.ts`;
    const hasConfig = hadConfig || /\bConfigModule\b/.test(read(files, root) ?? '');
    edit(
      files,
      context,
      root,
      moduleLines(hasConfig),
      ifThere((text) => addModules(text, hasConfig)),
    );
    edit(files, context, main, mainLines(mainText), ifThere(addToMain));
    // Made by `nest new` and `nest generate app`: it starts the whole application.
    const test = posix.join(posix.dirname(sourceRoot), 'test/app.e2e-spec.ts');
    edit(files, context, test, TEST_LINES, ifThere(addStub));
    context.logger.info(next(manager, example));
  };
}

/**
 * Not beside an example of another name: an application needs one.
 * @returns its name
 */
function addExample(files: HostFiles, context: Context): string {
  const other = files.exists('.env.example') ? undefined : files.root.subfiles.find(isOtherExample);
  if (other === undefined) {
    edit(files, context, '.env.example', addVariables(), (text) =>
      text === undefined && files.exists('.env.example') ? undefined : addVariables(text),
    );
    return '.env.example';
  }
  const text = read(files, other) ?? '';
  if (addVariables(text) !== text)
    context.logger.warn(`${other} is left to you, because of its name. Add:\n\n${addVariables()}\n`);
  return other;
}

type Edit = (text: string | undefined) => string | undefined;

function ifThere(how: (text: string) => string | undefined): Edit {
  return (text) => (text === undefined ? undefined : how(text));
}

function edit(files: HostFiles, context: Context, path: string, lines: string, how: Edit): void {
  const text = how(read(files, path));
  if (text !== undefined) return write(files, path, text);
  if (lines === '') return;
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
      `The version of NestJS is not known. Install the peer dependencies: ${manager.add} @nestjs/config @nestjs/axios axios class-validator`,
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
