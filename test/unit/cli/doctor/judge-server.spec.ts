import { beforeAll, describe, expect, it } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { judgeServer } from '../../../../lib/cli/doctor/judge-server.js';
import { issue, type Issued } from '../../../helpers/certificates.js';

const DAY_MS = 86_400_000;

describe('the judgement of a server', () => {
  const now = Date.now();
  const over = { notBefore: new Date(now - 90 * DAY_MS), notAfter: new Date(now - 9 * DAY_MS) };
  let root: Issued;
  let oldRoot: Issued;
  let namesake: Issued;
  let leaf: Issued;

  beforeAll(async () => {
    root = await issue('Root', { ca: true });
    oldRoot = await issue('Old Root', { ca: true, ...over });
    namesake = await issue('Root', { ca: true });
    leaf = await issue('api', { issuer: root, names: ['api.bank'] });
  });

  const judge = (shown: Issued[], notVerified: string, chain: Issued[]) =>
    judgeServer({
      place: {
        host: 'api.bank',
        port: 443,
        option: 'urls.baseUrl',
        url: new URL('https://api.bank'),
        server: 'api',
        describeOption: (option) => option,
      },
      facts: {
        established: true,
        notVerified,
        certificates: shown.map(parsed),
        askedForCertificate: false,
      },
      chain: chain.map(parsed),
      now,
      isPublic: () => Promise.resolve(false),
    });

  it('does not blame an old root that is sent beside the chain', async () => {
    const shown = () => [leaf, root, oldRoot];
    const otherName = await judge(shown(), 'ERR_TLS_CERT_ALTNAME_INVALID', [root]);
    expect(otherName.message).toMatch(/for another host name/);
    const otherChain = await judge(shown(), 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', [oldRoot]);
    expect(otherChain.message).not.toMatch(/has expired/);
    expect(otherChain.remedy).toContain('tls.chain');
    const datesFirst = await judge(shown(), 'CERT_HAS_EXPIRED', [namesake]);
    expect(datesFirst.message).toMatch(/the same name, but another key/);
  });

  it('blames it where it is what the server is verified by', async () => {
    const { message } = await judge([leaf, root, oldRoot], 'CERT_HAS_EXPIRED', [root]);
    expect(message).toMatch(/has expired: "CN=Old Root" ended/);
  });

  it('blames an expired certificate of the server, whatever else is wrong', async () => {
    const ended = await issue('api', { issuer: root, ...over });
    const { message } = await judge([ended], 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', [namesake]);
    expect(message).toMatch(/has expired: "CN=api" ended/);
  });

  it('sees the same name with another key, also where Node adds the one of the chain', async () => {
    const { message } = await judge([leaf, namesake], 'CERT_SIGNATURE_FAILURE', [namesake]);
    expect(message).toMatch(/the same name, but another key/);
  });
});

function parsed({ certificate }: Issued): X509Certificate {
  return new X509Certificate(certificate);
}
