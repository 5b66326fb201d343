import { isUtf8 } from 'node:buffer';
import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { GUIDES } from '../version.js';

/** The part of `Tree` of @angular-devkit/schematics that is used: the application's files. */
export interface HostFiles {
  exists(path: string): boolean;
  read(path: string): Buffer | null;
  create(path: string, content: string): void;
  overwrite(path: string, content: string): void;
}

/** The part of its `SchematicContext` that is used. */
export interface SchematicContext {
  logger: { info(text: string): void };
  addTask(task: { toConfiguration(): { name: string; options: object } }): unknown;
}

/** The part of @nestjs/schematics with which `nest generate` inserts a module into `imports`. */
interface NestSchematics {
  ModuleMetadataDeclarator: new () => {
    declare(content: string, options: { metadata: string; symbol: string }): string;
  };
}

const EXAMPLE = `# nestjs-service. Copy to .env. The other modes: ${GUIDES}/modes.md#the-five-modes
# All variables: ${GUIDES}/configuration.md
# In production, a client certificate needs the chain of the developer portal: SERVICE_TLS_CHAIN_FILE.
# Then: npx nestjs-service doctor
SERVICE_ENVIRONMENT=sandbox
SERVICE_AUTHENTICATION=app-token
SERVICE_SANDBOX_URL=
SERVICE_APP_TOKEN=
# The names of these headers contain the service's brand: the developer portal shows them.
SERVICE_APP_TOKEN_HEADER=
SERVICE_HTTP_CORRELATION_ID_HEADER=
`;

// No ValidationPipe here: with `whitelist` it would strip the bodies of routes that the application already has.
const MAIN_LINES = `    import { ServiceExceptionFilter } from 'nestjs-service';

    app.enableShutdownHooks();
    app.useGlobalFilters(new ServiceExceptionFilter());`;

const TEST_LINES = `    import { stubService } from 'nestjs-service/testing';

    const builder = Test.createTestingModule({ imports: [AppModule] });
    stubService(builder);
    const moduleFixture: TestingModule = await builder.compile();`;

/**
 * `nest add nestjs-service`: adds the peer dependencies, ServiceModule and .env.example if they are missing. For main.ts
 * and the end-to-end test it prints the lines to add, because an application may have changed these files in any way.
 *
 * @param options.sourceRoot the folder of main.ts. Default: `src`
 */
export function nestAdd({ sourceRoot = 'src' }: { sourceRoot?: string } = {}) {
  return async (files: HostFiles, context: SchematicContext): Promise<void> => {
    const write = (path: string, text: string): void =>
      files.exists(path) ? files.overwrite(path, text) : files.create(path, text);
    const printLines = (path: string, lines: string): void =>
      context.logger.info(`Add to ${path}:\n\n${lines}\n`);

    const manager = detectPackageManager((file) => files.exists(file));
    const manifest = read(files, 'package.json') ?? '{}';
    const peers = addPeers(manifest, read(files, 'node_modules/@nestjs/core/package.json'));
    if (peers === undefined) {
      context.logger.info(`Install: ${manager.add} @nestjs/config @nestjs/axios axios class-validator`);
    } else if (peers !== manifest) {
      write('package.json', peers);
      installWith(manager, context);
    }

    const example = read(files, '.env.example') ?? '';
    if (!/^[#\s]*SERVICE_/m.test(example)) write('.env.example', example + (example && '\n') + EXAMPLE);

    const main = posix.join(sourceRoot, 'main.ts');
    const mainText = read(files, main) ?? '';
    const root = `${posix.join(sourceRoot, findRootModule(mainText) ?? 'app.module')}.ts`;
    const rootText = read(files, root) ?? '';
    if (!/\bServiceModule\b/.test(rootText)) {
      // A second ConfigModule would read .env with default settings, and so ignore those of the first one.
      const hasConfig = /\bConfigModule\b/.test(rootText) || manifest.includes('"@nestjs/config"');
      const [imports, modules] = moduleLines(hasConfig);
      const text = await insertModules(rootText, modules);
      if (text === rootText) printLines(root, `    ${imports.join('\n    ')}\n\n    imports: [${modules}],`);
      else write(root, addImports(text, imports));
    }
    if (!mainText.includes('ServiceExceptionFilter')) printLines(main, MAIN_LINES);
    const test = posix.join(posix.dirname(sourceRoot), 'test/app.e2e-spec.ts');
    if (read(files, test)?.includes('stubService') === false) printLines(test, TEST_LINES);
    context.logger.info(
      `Next, with an account: fill in .env (see .env.example), then npx nestjs-service doctor
Without an account: ${manager.add} -D @peculiar/x509, then npx nestjs-service simulator
Step by step: ${GUIDES}/getting-started.md`,
    );
  };
}

/**
 * Finds the path, without the extension, from which main.ts imports the module that it passes to NestFactory. Undefined if
 * the module is not imported from a relative path.
 */
function findRootModule(main: string): string | undefined {
  const name = /\bNestFactory\.create\w*(?:<\w+>)?\(\s*(\w+)/.exec(main)?.[1];
  const imported = new RegExp(String.raw`^import \{[^}]*\b${name}\b[^}]*\} from ['"](\.[^'"\n]+)['"]`, 'm');
  return imported.exec(main)?.[1]?.replace(/\.[jt]s$/, '');
}

/** The module is global, so that the application's other modules can inject the services without importing it again. */
function moduleLines(hasConfig: boolean): [imports: string[], modules: string] {
  const service = "import { ServiceModule } from 'nestjs-service';";
  const module = 'ServiceModule.forRoot({ isGlobal: true })';
  if (hasConfig) return [[service], module];
  return [["import { ConfigModule } from '@nestjs/config';", service], `ConfigModule.forRoot(), ${module}`];
}

/** Inserts the modules at the end of the root module's `imports`. Returns the text unchanged if that is not possible. */
async function insertModules(text: string, symbol: string): Promise<string> {
  const { resolve } = createRequire(join(process.cwd(), 'package.json'));
  try {
    const path = pathToFileURL(resolve('@nestjs/schematics')).href;
    const { ModuleMetadataDeclarator } = (await import(path)) as NestSchematics;
    return new ModuleMetadataDeclarator().declare(text, { metadata: 'imports', symbol });
  } catch {
    return text;
  }
}

/** Adds import lines after the last import, with the same quotes, semicolons and line ends. */
function addImports(text: string, lines: readonly string[]): string {
  const last = [...text.matchAll(/^import\s[^;]*?['"][^'"\n]+['"];?/gm)].at(-1);
  const [style = ';', end = 0] = last ? [last[0], last.index + last[0].length] : [];
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const added = lines
    .map((line) => (style.includes('"') ? line.replaceAll("'", '"') : line))
    .map((line) => (style.endsWith(';') ? line : line.slice(0, -1)));
  return last ? [text.slice(0, end), ...added].join(eol) + text.slice(end) : [...added, text].join(eol);
}

function installWith({ name }: PackageManager, context: SchematicContext): void {
  const options = { command: 'install', quiet: true, hideOutput: true, packageManager: name };
  context.addTask({ toConfiguration: () => ({ name: 'node-package', options }) });
}

/** Refuses a file that is not UTF-8, because it would lose characters when it is written back. */
function read(files: HostFiles, path: string): string | undefined {
  const bytes = files.read(path);
  if (bytes && !isUtf8(bytes))
    throw new Error(
      `${path} is not UTF-8, so nothing was changed. Save it as UTF-8, and run the command again.`,
    );
  return bytes?.toString('utf8');
}

interface PackageManager {
  name: string;
  /** The command that installs a package. */
  add: string;
}

const BY_LOCK_FILE: Readonly<Record<string, PackageManager>> = {
  'yarn.lock': { name: 'yarn', add: 'yarn add' },
  'pnpm-lock.yaml': { name: 'pnpm', add: 'pnpm add' },
  'bun.lock': { name: 'bun', add: 'bun add' },
  'bun.lockb': { name: 'bun', add: 'bun add' },
};

/** Detects the package manager of a project by its lock file. Default: npm. */
function detectPackageManager(exists: (file: string) => boolean): PackageManager {
  const lock = Object.keys(BY_LOCK_FILE).find(exists);
  return lock === undefined ? { name: 'npm', add: 'npm i' } : BY_LOCK_FILE[lock];
}

/**
 * Adds the missing peer dependencies to package.json, in the versions that fit the installed NestJS.
 *
 * @param text package.json of the application
 * @param core package.json of the installed @nestjs/core
 * @returns the new package.json; undefined if NestJS is not installed, so that its version is unknown
 */
function addPeers(text: string, core: string | undefined): string | undefined {
  if (core === undefined) return undefined;
  const isLatest = Number.parseInt((JSON.parse(core) as { version: string }).version, 10) >= 12;
  const peers = {
    '@nestjs/axios': isLatest ? '^12.0.0' : '^4.0.0',
    '@nestjs/config': isLatest ? '^12.0.0' : '^4.0.0',
    axios: '^1.18.0',
    'class-validator': isLatest ? '^0.15.0' : '^0.14.0',
  };
  // Editors on Windows may begin a file with a byte order mark, which JSON.parse() refuses.
  const manifest = JSON.parse(text.replace(/^\uFEFF/, '')) as Record<string, object | undefined>;
  const { dependencies, devDependencies } = manifest;
  const named = { ...devDependencies, ...dependencies };
  const missing = Object.entries(peers).filter(([name]) => !Object.hasOwn(named, name));
  if (missing.length === 0) return text;
  const all = [...Object.entries(dependencies ?? {}), ...missing].sort();
  const changed = { ...manifest, dependencies: Object.fromEntries(all) };
  return `${JSON.stringify(changed, null, /^[ \t]+/m.exec(text)?.[0] ?? '  ')}\n`;
}
