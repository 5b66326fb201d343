import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const digest = (algorithm, content, encoding) => createHash(algorithm).update(content).digest(encoding);

/**
 * A registry on loopback that has one package, from its packed file; for all others it redirects to `upstream`, so npm's
 * cache serves those as usual. `{ url, stop }`.
 */
export async function startRegistry({ manifest, tarball, upstream }) {
  const content = await readFile(tarball);
  const { name, version } = manifest;
  const file = `/${name}/-/${name}-${version}.tgz`;

  const server = createServer(({ url: path, method }, response) => {
    const answer = (body, type) =>
      response.writeHead(200, { 'content-type': type, 'content-length': body.length }).end(body);
    if (method !== 'GET' && method !== 'HEAD') return void response.writeHead(405).end();
    if (path === file) return void answer(content, 'application/octet-stream');
    if (path === `/${name}`) return void answer(Buffer.from(JSON.stringify(packument())), 'application/json');
    response.writeHead(307, { location: new URL(path.slice(1), upstream).href }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;

  const packument = () => ({
    name,
    'dist-tags': { latest: version },
    time: { [version]: new Date(0).toISOString() },
    versions: {
      [version]: {
        ...manifest,
        dist: {
          tarball: url + file,
          shasum: digest('sha1', content, 'hex'),
          integrity: `sha512-${digest('sha512', content, 'base64')}`,
        },
      },
    },
  });

  return {
    url,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
