import { expect, it } from '@jest/globals';
import { resolveOptions } from '../../../../lib/config/resolve-options.js';
import { type ResolvedOptions } from '../../../../lib/config/resolved-options.js';
import { checkBanks, type BanksCheckParts } from '../../../../lib/cli/doctor/banks-check.js';
import { SeenAnswers } from '../../../../lib/cli/doctor/seen-answers.js';

const BASE = 'https://service.invalid/api';

async function findingOf(location: string | undefined) {
  const { options } = await resolveOptions({ urls: { sandboxUrl: BASE }, appToken: 'app-token' });
  const headers = location === undefined ? {} : { location };
  const answers = new SeenAnswers(
    async () => ({
      status: 301,
      statusText: '',
      headers,
      body: Buffer.alloc(0),
      reusedSocket: false,
      untilClose: false,
    }),
    Date.now,
  );
  const parts = {
    options: options as ResolvedOptions,
    identity: {},
    agents: { api: () => undefined },
    answers,
  };
  const signal = new AbortController().signal;
  return checkBanks(parts as unknown as BanksCheckParts, undefined, 1_000, signal);
}

it.each([
  [`${BASE}/banks/v1/`, 'a redirect to https://service.invalid.', 'http.trailingSlash'],
  ['v1/', 'a redirect to https://service.invalid.', 'http.trailingSlash'],
  ['https://other.invalid/api/banks/v1/', 'a redirect to https://other.invalid.', 'urls.sandboxUrl'],
  [`${BASE}/login`, 'a redirect to https://service.invalid.', 'urls.sandboxUrl'],
  [undefined, 'a redirect.', 'urls.sandboxUrl'],
])(
  'a redirect to %s: says where it leads, and names the option to correct',
  async (location, said, option) => {
    const finding = await findingOf(location);
    expect(finding).toMatchObject({ status: 'failed', option });
    expect(finding.message).toContain(said);
    expect(finding.remedy).toContain(option);
  },
);
