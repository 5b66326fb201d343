import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Starts an nginx with all its files in a temporary folder. `servers` is the content of the http block of its configuration. */
export async function startNginx(program: string, servers: string): Promise<{ stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'nestjs-service-nginx-'));
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const temporary = folders.map((name) => `${name}_temp_path ${name};`).join('\n');
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off;\nmaster_process off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${servers}\n}\n`,
  );
  const nginx = spawn(program, ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errorOutput = '';
  nginx.stderr.setEncoding('utf8').on('data', (text: string) => (errorOutput += text));
  for (const [, port] of servers.matchAll(/listen 127\.0\.0\.1:(\d+)/g)) {
    while (!(await accepts(Number(port)))) {
      if (nginx.exitCode !== null) throw new Error(`nginx did not start: ${errorOutput}`);
    }
  }
  return {
    stop: async () => {
      const ended = nginx.exitCode === null ? once(nginx, 'exit') : undefined;
      nginx.kill('SIGTERM');
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket.destroy() && true));
    socket.once('error', () => setTimeout(resolve, 10, false));
  });
}
