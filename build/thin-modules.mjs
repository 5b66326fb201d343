/** Of what lib imports, the packages that are ES modules, or have a copy of their own for ES modules. */
const PEER = /^(?:@nestjs\/[a-z]+|axios)$/;

const upFrom = (file) => '../'.repeat(file.split('/').length - 1);

/**
 * A plugin of the CommonJS build in cjs/: the exports of each entry as an ES module in node/.
 *
 * Such a module hands over the peers that an ES host has loaded, and the build requires only what it was not given: there
 * is no second copy of axios, and a jest below Node 24.9, which cannot require the ES modules of NestJS 12, has not to.
 */
export const thinModules = {
  name: 'thin-modules',
  generateBundle(options, output) {
    const emit = (fileName, source) => this.emitFile({ type: 'asset', fileName, source: `${source}\n` });
    const importedBy = (file) => output[file].imports.flatMap((id) => (id in output ? importedBy(id) : id));
    emit('cjs/package.json', '{ "type": "commonjs" }');
    emit('cjs/peers.js', 'module.exports = {};');
    for (const { type, fileName, name, code, exports, isEntry } of Object.values(output)) {
      if (type !== 'chunk') continue;
      output[fileName].code = code.replace(/\brequire\("([^"]+)"\)/g, (load, id) =>
        PEER.test(id) ? `(require("${upFrom(fileName)}cjs/peers.js")["${id}"] ?? ${load})` : load,
      );
      if (!isEntry) continue;
      const peers = new Set(importedBy(fileName).filter((id) => PEER.test(id)));
      emit(`node/${name}.js`, thinModule(name, [...peers], exports));
    }
  },
};

function thinModule(name, peers, exports) {
  const cjs = `${upFrom(`node/${name}`)}cjs`;
  const given = peers.map((id, i) => `"${id}": peer${i}`);
  return [
    `import { createRequire } from "node:module";`,
    ...peers.map((id, i) => `import ${id === 'axios' ? '' : '* as '}peer${i} from "${id}";`),
    `const require = createRequire(import.meta.url);`,
    `Object.assign(require("${cjs}/peers.js"), { ${given.join(', ')} });`,
    `export const { ${exports.join(', ')} } = require("${cjs}/${name}.js");`,
  ].join('\n');
}
