// require() and import() load the same classes: the CommonJS build is not used in a running application.
const assert = require('node:assert/strict');

const SUBPATHS = ['', '/redis', '/swagger', '/terminus', '/testing'];

(async () => {
  for (const subpath of SUBPATHS) {
    const required = require(`nestjs-service${subpath}`);
    const imported = await import(`nestjs-service${subpath}`);
    assert.deepEqual(Object.keys(required).sort(), Object.keys(imported).sort());
    for (const [name, value] of Object.entries(required)) assert.equal(value, imported[name], name);
  }
})();
