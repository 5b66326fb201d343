import { cp, mkdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runBounded } from './run-bounded.mjs';

/**
 * Does the steps of a Dockerfile without Docker, on the Node of this machine. The file system of each stage is a folder in
 * `folder`. Resolves to the last one: `{ root, cwd, env, user, command }`.
 */
export async function buildImage(dockerfile, { context, folder, env }) {
  const stages = new Map();
  let stage;
  const inStage = (path) => (path.startsWith('/') ? join(stage.root, path) : join(stage.cwd, path));

  const steps = {
    FROM: async (text) => {
      const [, name = 'last'] = /^\S+(?: AS (\w+))?$/.exec(text);
      const root = join(folder, name);
      stage = { root, cwd: root, env: {}, user: 'root' };
      stages.set(name, stage);
      await mkdir(root, { recursive: true });
    },
    ENV: (text) => {
      const [, name, value] = /^(\w+)=(\S+)$/.exec(text);
      stage.env[name] = value;
    },
    WORKDIR: async (path) => {
      stage.cwd = inStage(path);
      await mkdir(stage.cwd, { recursive: true });
    },
    COPY: async (text) => {
      const [, from, paths] = /^(?:--from=(\w+) )?(.+)$/.exec(text);
      const source = from ? stages.get(from).root : context;
      const sources = paths.split(' ');
      const target = sources.pop();
      for (const path of sources) {
        const isFolder = (await stat(join(source, path))).isDirectory();
        const into = !isFolder && target.endsWith('/') ? join(target, basename(path)) : target;
        await cp(join(source, path), inStage(into), { recursive: true, verbatimSymlinks: true });
      }
    },
    RUN: (command) =>
      runBounded('sh', ['-c', command], {
        cwd: stage.cwd,
        env: { ...env, ...stage.env },
        timeoutMs: 300_000,
      }),
    USER: (user) => void (stage.user = user),
    CMD: (text) => void (stage.command = JSON.parse(text)),
  };

  for (const line of dockerfile.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, instruction, text] = /^([A-Z]+) (.+)$/.exec(line);
    await steps[instruction](text);
  }
  return stage;
}
