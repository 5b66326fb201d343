import { isUtf8 } from 'node:buffer';
import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { GUIDES } from '../version.js';
import { addPeers, lockedManager, type Manager } from './manifest.js';

/** What this needs of the Tree of @angular-devkit/schematics. */
export interface HostFiles {
  exists(path: string): boolean;
  read(path: string): Buffer | null;
  create(path: string, content: string): void;
  overwrite(path: string, content: string): void;
}

/** What this needs of its SchematicContext. */
export interface Context {
  logger: { info(text: string): void };
  addTask(task: { toConfiguration(): { name: string; options: object } }): unknown;
}

/** The part of @nestjs/schematics that `nest generate` inserts modules with. */
interface NestSchematics {
  ModuleMetadataDeclarator: new () => {
    declare(content: string, options: { metadata: string; symbol: string }): string;
  };
}

const EXAMPLE = `# nestjs-service. Copy to .env. The other modes: ${GUIDES}/getting-started.md#the-five-modes
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

// No ValidationPipe: with `whitelist` it would empty the bodies of the routes that an application has already.
const MAIN_LINES = `    import { ServiceExceptionFilter } from 'nestjs-service';

    app.enableShutdownHooks();
    app.useGlobalFilters(new ServiceExceptionFilter());`;

const TEST_LINES = `    import { stubService } from 'nestjs-service/testing';

    const builder = Test.createTestingModule({ imports: [AppModule] });
    stubService(builder);
    const moduleFixture: TestingModule = await builder.compile();`;

/**
 * `nest add nestjs-service`: adds the peers, the module and .env.example, where they are missing, and prints the lines for
 * main.ts and for the test of the whole application.
 *
 * @param options.sourceRoot the folder of main.ts; `src` by default
 */
export function nestAdd({ sourceRoot = 'src' }: { sourceRoot?: string } = {}) {
  return async (files: HostFiles, context: Context): Promise<void> => {
    const write = (path: string, text: string): void =>
      files.exists(path) ? files.overwrite(path, text) : files.create(path, text);
    const print = (path: string, lines: string): void => context.logger.info(`Add to ${path}:\n\n${lines}\n`);

    const manager = lockedManager((file) => files.exists(file));
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
    const root = `${posix.join(sourceRoot, rootModuleOf(mainText) ?? 'app.module')}.ts`;
    const rootText = read(files, root) ?? '';
    if (!/\bServiceModule\b/.test(rootText)) {
      // A second ConfigModule would read .env past the settings of the first.
      const hasConfig = /\bConfigModule\b/.test(rootText) || manifest.includes('"@nestjs/config"');
      const [imports, modules] = moduleLines(hasConfig);
      const text = await insert(rootText, modules);
      if (text === rootText) print(root, `    ${imports.join('\n    ')}\n\n    imports: [${modules}],`);
      else write(root, addImports(text, imports));
    }
    if (!mainText.includes('ServiceExceptionFilter')) print(main, MAIN_LINES);
    const test = posix.join(posix.dirname(sourceRoot), 'test/app.e2e-spec.ts');
    if (read(files, test)?.includes('stubService') === false) print(test, TEST_LINES);
    context.logger.info(
      `Next, with an account: fill in .env (see .env.example), then npx nestjs-service doctor
Without an account: ${manager.add} -D @peculiar/x509, then npx nestjs-service simulator
Step by step: ${GUIDES}/getting-started.md`,
    );
  };
}

/** Where main.ts has its root module from, without the ending; undefined if that is no file beside it. */
function rootModuleOf(main: string): string | undefined {
  const name = /\bNestFactory\.create\w*(?:<\w+>)?\(\s*(\w+)/.exec(main)?.[1];
  const imported = new RegExp(String.raw`^import \{[^}]*\b${name}\b[^}]*\} from ['"](\.[^'"\n]+)['"]`, 'm');
  return imported.exec(main)?.[1]?.replace(/\.[jt]s$/, '');
}

/** Global, so that the application's other modules need no import, and no second client. */
function moduleLines(hasConfig: boolean): [imports: string[], modules: string] {
  const service = "import { ServiceModule } from 'nestjs-service';";
  const module = 'ServiceModule.forRoot({ isGlobal: true })';
  if (hasConfig) return [[service], module];
  return [["import { ConfigModule } from '@nestjs/config';", service], `ConfigModule.forRoot(), ${module}`];
}

/** The root module with the modules at the end of its imports; unchanged if they cannot be inserted. */
async function insert(text: string, symbol: string): Promise<string> {
  const { resolve } = createRequire(join(process.cwd(), 'package.json'));
  try {
    const path = pathToFileURL(resolve('@nestjs/schematics')).href;
    const { ModuleMetadataDeclarator } = (await import(path)) as NestSchematics;
    return new ModuleMetadataDeclarator().declare(text, { metadata: 'imports', symbol });
  } catch {
    return text;
  }
}

/** After the last import, in its style. */
function addImports(text: string, lines: readonly string[]): string {
  const last = [...text.matchAll(/^import\s[^;]*?['"][^'"\n]+['"];?/gm)].at(-1);
  const [style = ';', end = 0] = last ? [last[0], last.index + last[0].length] : [];
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const added = lines
    .map((line) => (style.includes('"') ? line.replaceAll("'", '"') : line))
    .map((line) => (style.endsWith(';') ? line : line.slice(0, -1)));
  return last ? [text.slice(0, end), ...added].join(eol) + text.slice(end) : [...added, text].join(eol);
}

function installWith({ name }: Manager, context: Context): void {
  const options = { command: 'install', quiet: true, hideOutput: true, packageManager: name };
  context.addTask({ toConfiguration: () => ({ name: 'node-package', options }) });
}

/** Written again, a file that is not UTF-8 would lose characters. Nothing is changed after an error. */
function read(files: HostFiles, path: string): string | undefined {
  const bytes = files.read(path);
  if (bytes && !isUtf8(bytes)) throw new Error(`${path} is not UTF-8. Save it as that, and try again.`);
  return bytes?.toString('utf8');
}
