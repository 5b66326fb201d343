// nginx with a certificate of the bench, as a service would run it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Starts nginx with one `server` for each entry: the directives of that server. Resolves to their ports, and to reload(), which closes
 * the idle connections.
 */
export async function startNginx(authority, servers) {
  const issued = await authority.issue({ server: ['localhost'] }, { commonName: 'localhost' });
  const folder = mkdtempSync(join(tmpdir(), 'bench-nginx-'));
  const files = { 'tls.crt': issued.certificate, 'tls.key': issued.privateKey, 'ca.pem': authority.chain };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${name};`,
  );
  const ports = [];
  for (const _ of servers) ports.push(await freePort());
  const blocks = servers.map(
    (directives, index) => `server {
      listen 127.0.0.1:${ports[index]} ssl; ssl_certificate tls.crt; ssl_certificate_key tls.key;
      location / { return 200 '{"ok":true}'; }
      ${directives}
    }`,
  );
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid nginx.pid; worker_processes 1; worker_rlimit_nofile 4096; events { worker_connections 2000; }
    http { access_log off; ${temporary.join(' ')} default_type application/json; keepalive_requests 100000; ${blocks.join('\n')} }`,
  );
  const nginx = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], { stdio: 'ignore' });
  await sleep(500);
  return {
    ports,
    reload: () => nginx.kill('SIGHUP'),
    stop: () => {
      nginx.kill();
      rmSync(folder, { recursive: true, maxRetries: 3 });
    },
  };
}
