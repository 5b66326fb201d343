import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Small programs for `node -e`, in the module system of the consumer; each throws where its check fails. */
const assertions = (body, type) =>
  type === 'module'
    ? `import assert from 'node:assert/strict'; ${body('await import')}`
    : `const assert = require('node:assert/strict'); (async () => { ${body('require')} })();`;

/** The package works also where the host has not loaded reflect-metadata. */
export const withoutReflectMetadata = (type) =>
  assertions(
    (load) => `
      assert.equal(Reflect.getMetadata, undefined);
      const { BanksService, ServiceModule, getServiceToken } = ${load}('nestjs-service');
      assert.equal(getServiceToken(BanksService), BanksService);
      assert.equal(ServiceModule.forRoot().module, ServiceModule);
      assert.ok(Reflect.getMetadata('providers', ServiceModule));`,
    type,
  );

/** A bundle can rename classes, lose metadata of decorators, and lose where its lines come from. */
export const bundledRight = (type) =>
  assertions(
    (load) => `
      for (const subpath of ['', '/redis', '/testing']) {
        for (const [name, value] of Object.entries(${load}('nestjs-service' + subpath))) {
          if (/^class /.test(value)) assert.equal(value.name, name);
        }
      }
      const { ServiceAuthService, ConnectDto } = ${load}('nestjs-service');
      assert.ok(Reflect.getMetadata('design:paramtypes', ServiceAuthService).length > 0);
      assert.equal(Reflect.getMetadata('design:type', ConnectDto.prototype, 'customer_id'), String);
      await assert.rejects(async () => ${load}('nestjs-service/dist/index.js'), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' });
      const { serviceErrors } = ${load}('nestjs-service/testing');
      assert.match(serviceErrors.api(404).stack, /[/\\\\]lib[/\\\\][a-z/\\\\-]+\\.ts:\\d+/);`,
    type,
  );

/** The names of the optional peers of the installed package. */
export async function optionalPeers(folder) {
  const manifest = join(folder, 'node_modules', 'nestjs-service', 'package.json');
  const { peerDependenciesMeta } = JSON.parse(await readFile(manifest, 'utf8'));
  return Object.keys(peerDependenciesMeta).filter((name) => peerDependenciesMeta[name].optional);
}

/**
 * Without the optional peers the root and its doubles work. What needs one says what to install, or names it as a package
 * that is not found.
 */
export const withoutOptionalPeers = (type) =>
  assertions(
    (load) => `
      const { readFileSync } = ${load}('node:fs');
      const { createRequire } = ${load}('node:module');
      const { peerDependenciesMeta } = JSON.parse(readFileSync('node_modules/nestjs-service/package.json', 'utf8'));
      const { resolve } = createRequire(process.cwd() + '/');
      for (const peer of Object.keys(peerDependenciesMeta)) {
        assert.throws(() => resolve(peer), { code: 'MODULE_NOT_FOUND' }, peer);
      }
      const { ServiceModule } = ${load}('nestjs-service');
      assert.ok(ServiceModule);
      await assert.rejects(async () => ${load}('nestjs-service/terminus'), /Cannot find (package|module) .@nestjs\\/terminus/);
      const { RedisTokenStore } = ${load}('nestjs-service/redis');
      const [fault] = new RedisTokenStore({ client: {} }).check();
      assert.match(fault, /not a client of node-redis or ioredis/);
      const { ServiceSimulator } = ${load}('nestjs-service/testing');
      await assert.rejects(ServiceSimulator.start(), /npm i -D @peculiar\\/x509/);
      const { spawnSync } = ${load}('node:child_process');
      const command = 'node_modules/nestjs-service/dist/cli/main.js';
      const simulator = spawnSync(process.execPath, [command, 'simulator', '--port', '0'], { encoding: 'utf8' });
      assert.equal(simulator.status, 1);
      assert.match(simulator.stderr, /^[^\\n]*npm i -D @peculiar\\/x509\\n$/);`,
    type,
  );
