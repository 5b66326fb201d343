// Makes the package of what `nest build` left in dist/ (or in the folder that is named): each entry becomes one file, with
// what entries share in chunks/.
// An application has one copy of the package. In Node that is the CommonJS build, cjs/: `require` gets it, and `import` the
// same exports by thin ES modules, node/. For an ES build, Node would read each CommonJS package that it imports for its
// names, which costs a host of NestJS 11 more than all else that the package does at start. A bundler takes the ES build
// (`module`), and the commands run it.
import { decode, encode } from '@jridgewell/sourcemap-codec';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';
import { thinModules } from './thin-modules.mjs';

const root = join(import.meta.dirname, '..');
const dist = resolve(root, process.argv[2] ?? 'dist');
const PUBLIC = ['index', 'redis/index', 'terminus/index', 'testing/index'];
const COMMANDS = ['cli/main', 'schematics/nest-add'];
const ASSETS = ['schematics/collection.json'];

/** Rooms that are entries of their own. */
const DOOR = /^(?:cli|redis|schematics|terminus|testing)[/\\]/;
const isShared = (id) => id.startsWith(dist) && !DOOR.test(id.slice(dist.length + 1));

/** What the simulator needs, which loads neither Nest nor axios. */
function neededBySimulator(context) {
  const found = new Set([join(dist, 'testing', 'simulator.js')]);
  for (const id of found) for (const next of context.getModuleInfo(id)?.importedIds ?? []) found.add(next);
  return found;
}

const basics = {
  debugName: 'basics',
  name: (id, context) => (isShared(id) && neededBySimulator(context).has(id) ? 'basics' : null),
  priority: 2,
};
// With the root itself, so that its first import, reflect-metadata, is the first one of the chunk.
const core = { name: 'core', test: (id) => isShared(id) || id === '\0rolldown/runtime.js', priority: 1 };
/** What reads a host's configuration loads Nest, which the simulator does not need. */
const HOST = /cli[/\\]host-configuration\.js$/;
const isOfCommands = (id) => id.startsWith(join(dist, 'cli')) && !HOST.test(id);
const commands = { name: 'commands', test: isOfCommands, minShareCount: 2, priority: 1 };
const host = { name: 'host', test: HOST };

/** Rolldown reads no source maps by itself. */
const compilerMaps = {
  name: 'compiler-maps',
  async load(id) {
    if (!id.startsWith(dist) || !id.endsWith('.js')) return null;
    const [code, map] = await Promise.all([readFile(id, 'utf8'), readFile(`${id}.map`, 'utf8')]);
    return { code, map };
  },
};

const LINE = 2;
const NAME = 4;

/** A stack trace and a breakpoint need the line: a position within it takes four times the size. No name is changed. */
function linesOnly(segments) {
  const firsts = segments.filter((segment, i) => segment[LINE] !== segments[i - 1]?.[LINE]);
  return firsts.map((segment) => segment.slice(0, NAME));
}

/** Without names and sources, which would be a quarter of the package: a stack names their files and lines. */
function smallMap(json) {
  const map = JSON.parse(json);
  const mappings = encode(decode(map.mappings).map(linesOnly));
  return JSON.stringify({ ...map, mappings, names: [], sourcesContent: undefined });
}

/** Resolves to the files of one build, by their paths in dist/. */
async function bundle({ names, ending = '.js', plugins = [compilerMaps], folder = '', ...output }) {
  const input = Object.fromEntries(names.map((name) => [name, join(dist, name + ending)]));
  const build = await rolldown({
    input,
    plugins,
    platform: 'node',
    external: (id) => !/^(?:\.|\/|[A-Z]:|\0)/i.test(id),
    // The version, without the rest of what its chunk loads.
    optimization: { inlineConst: true },
    experimental: { attachDebugInfo: 'none' },
    onLog: (level, log, handle) =>
      // How long plugins took on a busy machine is no fault.
      handle(level === 'warn' && log.code !== 'PLUGIN_TIMINGS' ? 'error' : level, log),
  });
  const chunkFileNames = ({ name, isDynamicEntry }) =>
    `${isDynamicEntry ? 'cli' : 'chunks'}/${name}${ending}`;
  const result = await build.generate({ chunkFileNames, minifyInternalExports: false, ...output });
  await build.close();
  return result.output.map(({ fileName, code, source }) => [
    join(folder, fileName),
    fileName.endsWith('.map') ? smallMap(source) : (code ?? source),
  ]);
}

const types = {
  names: PUBLIC,
  ending: '.d.ts',
  plugins: [dts({ dtsInput: true, tsconfig: false })],
  codeSplitting: { groups: [core] },
};

const built = await Promise.all([
  bundle({
    names: [...PUBLIC, ...COMMANDS],
    comments: false,
    // Only bundlers read it, and the command runs it. Names stay.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    codeSplitting: { groups: [basics, core, commands, host] },
  }),
  bundle({
    names: PUBLIC,
    plugins: [compilerMaps, thinModules],
    entryFileNames: 'cjs/[name].js',
    chunkFileNames: 'cjs/chunks/[name].js',
    format: 'cjs',
    comments: false,
    sourcemap: true,
    // Jest has no import() where it runs CommonJS.
    dynamicImportInCjs: false,
    codeSplitting: { groups: [core] },
  }),
  bundle(types),
  bundle({ ...types, folder: 'cjs' }),
  Promise.all(ASSETS.map(async (file) => [file, await readFile(join(root, 'lib', file))])),
]);

await rm(dist, { recursive: true });
for (const [file, content] of built.flat()) {
  await mkdir(join(dist, dirname(file)), { recursive: true });
  await writeFile(join(dist, file), content);
}
await chmod(join(dist, 'cli', 'main.js'), 0o755);
