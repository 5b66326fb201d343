import { GUIDES } from '../version.js';

const LINES = [
  `# nestjs-service. Copy to .env. The other modes: ${GUIDES}/getting-started.md#the-five-modes`,
  `# All variables: ${GUIDES}/configuration.md`,
  '# In production, a client certificate needs the chain of the developer portal: SERVICE_TLS_CHAIN_FILE.',
  '# Then: npx nestjs-service doctor',
  'SERVICE_ENVIRONMENT=sandbox',
  'SERVICE_AUTHENTICATION=app-token',
  'SERVICE_SANDBOX_URL=',
  'SERVICE_APP_TOKEN=',
];

/** .env.example with the variables of the first mode. One that names a variable of the module stays as it is. */
export function addVariables(text = ''): string {
  if (/^[#\s]*SERVICE_/m.test(text)) return text;
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const separator = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol;
  return text + separator + LINES.join(eol) + eol;
}

/** `env-example`, `.env.dist`, `.env.sample`, `example.env`: what others call their .env.example. */
export function isOtherExample(file: string): boolean {
  return /^\.?env\b.*(example|sample|template|dist)|^\.?(example|sample|template)\.env$/i.test(file);
}
