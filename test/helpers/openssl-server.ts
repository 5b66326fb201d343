import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Starts `openssl s_server`, which sends alerts where Node's own server only ends the connection. It responds with a page. */
export async function opensslServer(
  program: string,
  options: readonly string[],
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = spawn(program, ['s_server', '-accept', '127.0.0.1:0', ...options, '-www']);
  let said = '';
  for await (const chunk of server.stdout) if ((said += String(chunk)).includes('ACCEPT')) break;
  return {
    url: `https://localhost:${/ACCEPT [^\n]*:(\d+)/.exec(said)?.[1]}`,
    stop: async () => {
      server.kill();
      await once(server, 'exit');
    },
  };
}
