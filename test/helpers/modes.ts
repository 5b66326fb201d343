import { type SimulatorModeOptions } from 'nestjs-service/testing';

export const MODES = {
  'sandbox/app-token': { environment: 'sandbox', authentication: 'app-token' },
  'sandbox/mtls': { environment: 'sandbox', authentication: 'mtls', oauth: true },
  'sandbox/oauth': { environment: 'sandbox', authentication: 'oauth' },
  'production/mtls': { environment: 'production', authentication: 'mtls', oauth: true },
  'production/oauth': {
    environment: 'production',
    authentication: 'oauth',
    clientCertificate: true,
    oauthMtls: true,
  },
} satisfies Record<string, SimulatorModeOptions>;
