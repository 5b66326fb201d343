import { codeOf, keysOf } from './source-text.js';

/*
 * What `nest add` puts into the root module of an application, and into main.ts and the test as `nest new` and
 * `nest generate app` of NestJS 11 and 12 write them. Undefined for a file of any other form. A file that imports the name
 * from the package already is as it should be.
 */
const QUOTED = String.raw`(?:'[^'\n]+'|"[^"\n]+")`;
const IMPORTS = String.raw`^(?<imports>\s*(?:import [\w{}*,\s]+ from ${QUOTED};?\s*)+)`;
const MAIN = new RegExp(
  String.raw`${IMPORTS}(?<start>async function bootstrap\(\)(?:: Promise<void>)? \{` +
    String.raw`(?<line>\s*)const app = await NestFactory\.create\(\w+(?:, \{\s*instrument: ObserveInstrument,?\s*\})?\);?)` +
    String.raw`(?<rest>\s*await app\.listen\(process\.env\.(?:PORT|port) \?\? 3000\);?\s*\}\s*(?:void |await )?bootstrap\(\);?\s*)$`,
);

const APPLICATION_TEST = new RegExp(
  String.raw`${IMPORTS}(?<start>describe\(${QUOTED}, \(\) => \{\s*let app: INestApplication(?:<App>)?;?\s*` +
    String.raw`beforeEach\(async \(\) => \{)(?<line>\s*)(?<fixture>const moduleFixture(?:: TestingModule)? = await )` +
    String.raw`(?<builder>Test\.createTestingModule\(\{\s*imports: \[\w+\],?\s*\}\))(?<rest>\.compile\(\);?` +
    String.raw`\s*app = moduleFixture\.createNestApplication\(\);?\s*await app\.init\(\);?\s*\}\)[^]*)$`,
);

// Global, so that the application's other modules need no import, and no second client.
export const SERVICE_MODULE = 'ServiceModule.forRoot({ isGlobal: true })';
const CONFIG_MODULE = 'ConfigModule.forRoot()';
const IMPORT = /^import\s[^;]*?['"][^'"\n]+['"];?[ \t]*$/gm;

/**
 * The root module, with ServiceModule among its imports, before the others.
 * @param hasConfig the application has a ConfigModule: a second one would read .env past the settings of the first
 */
export function addModules(text: string, hasConfig: boolean): string | undefined {
  if (isImported(text, 'ServiceModule')) return text;
  const code = codeOf(text);
  const [decorator, ...others] = [...code.matchAll(/@Module\(\s*(?=\{)/g)];
  if (!decorator || others.length > 0 || /\bServiceModule\b/.test(code)) return undefined;
  const metadata = decorator.index + decorator[0].length;
  const keys = keysOf(code, metadata);
  const array = /[{,]\s*imports\s*:\s*\[(?=\s*\]\s*(?:,|$))/.exec(keys);
  const isAbsent = keys !== '' && !/\bimports\b|[{,]\s*:/.test(keys);
  const lastImport = [...text.matchAll(IMPORT)].at(-1);
  if ((!array && !isAbsent) || keys.includes('...') || !lastImport) return undefined;
  const open = array ? metadata + array.index + array[0].length - 1 : metadata;
  const modules = hasConfig ? [SERVICE_MODULE] : [CONFIG_MODULE, SERVICE_MODULE];
  const head = lastImport.index + lastImport[0].length;
  const imports = addImports(
    text.slice(0, head),
    ...(hasConfig ? [] : [['ConfigModule', '@nestjs/config'] as [string, string]]),
    ['ServiceModule', 'nestjs-service'],
  );
  const start = imports + text.slice(head, open + 1);
  const rest = text.slice(open + 1);
  // On lines of their own where the others are.
  const [lines = ''] = /^\s*/.exec(rest) ?? [];
  if (!array) return `${start}${lines || ' '}imports: [${modules.join(', ')}],${lines ? '' : ' '}${rest}`;
  if (/^\s*\]/.test(rest)) return start + modules.join(', ') + rest;
  return start + modules.map((module) => `${lines}${module},${lines ? '' : ' '}`).join('') + rest;
}

/** main.ts, with shutdown hooks and exception filter. */
export function addToMain(text: string): string | undefined {
  if (isImported(text, 'ServiceExceptionFilter')) return text;
  const found = MAIN.exec(text)?.groups;
  if (!found) return undefined;
  const { imports = '', start = '', line = '', rest = '' } = found;
  const end = semicolonOf(imports);
  // No ValidationPipe: with `whitelist` it would empty the bodies of the routes that an application has already.
  const calls = ['app.enableShutdownHooks()', 'app.useGlobalFilters(new ServiceExceptionFilter())'];
  const added = addImports(imports, ['ServiceExceptionFilter', 'nestjs-service']);
  return added + start + calls.map((call) => line + call + end).join('') + rest;
}

/**
 * The test of the whole application, with doubles of the services: without them it would need the SERVICE_* variables.
 */
export function addStub(text: string): string | undefined {
  if (isImported(text, 'stubService')) return text;
  const found = APPLICATION_TEST.exec(text)?.groups;
  if (!found || text.split('createTestingModule').length > 2 || text.includes('stubService'))
    return undefined;
  const { imports = '', start = '', line = '', fixture = '', builder = '', rest = '' } = found;
  const end = semicolonOf(imports) + line;
  const doubles = `${line}const builder = ${builder}${end}stubService(builder)${end}`;
  return (
    addImports(imports, ['stubService', 'nestjs-service/testing']) +
    `${start}${doubles}${fixture}builder${rest}`
  );
}

/** Where main.ts has the class from that it creates, without the ending; undefined where that is no file beside it. */
export function rootModuleOf(main: string): string | undefined {
  const name = /\bNestFactory\.create\w*(?:<\w+>)?\(\s*(\w+)/.exec(main)?.[1];
  const imported = new RegExp(String.raw`^import \{[^}]*\b${name}\b[^}]*\} from ['"](\.[^'"\n]+)['"]`, 'm');
  return imported.exec(main)?.[1]?.replace(/\.[jt]s$/, '');
}

function isImported(text: string, name: string): boolean {
  return new RegExp(
    String.raw`^import [\w{},\s]*\b${name}\b[\w{},\s]* from ['"]nestjs-service[/'"]`,
    'm',
  ).test(text);
}

/** In the style of the imports that are there. */
function addImports(imports: string, ...added: [name: string, from: string][]): string {
  const quote = imports.includes('"') ? '"' : "'";
  const eol = imports.includes('\r\n') ? '\r\n' : '\n';
  const lines = added.map(
    ([name, from]) => `${eol}import { ${name} } from ${quote}${from}${quote}${semicolonOf(imports)}`,
  );
  const end = imports.trimEnd().length;
  return imports.slice(0, end) + lines.join('') + imports.slice(end);
}

function semicolonOf(imports: string): string {
  return imports.trimEnd().endsWith(';') ? ';' : '';
}
