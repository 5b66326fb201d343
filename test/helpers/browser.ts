import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const QUIET = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** The DOM of a page once its scripts have run, in headless Chromium. */
export async function renderPage(browser: string, url: string): Promise<string> {
  const profile = await mkdtemp(join(tmpdir(), 'nestjs-service-browser-'));
  try {
    const { stdout } = await promisify(execFile)(
      browser,
      [
        '--headless',
        '--no-sandbox',
        ...QUIET,
        `--user-data-dir=${profile}`,
        '--virtual-time-budget=10000',
        '--dump-dom',
        url,
      ],
      { timeout: 20_000, maxBuffer: 16 * 1024 * 1024 },
    );
    return stdout;
  } finally {
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
