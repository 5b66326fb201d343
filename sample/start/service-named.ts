/** Whether the environment, with .env in it, names a service to talk to. */
export function isServiceNamed(env: NodeJS.ProcessEnv = process.env): boolean {
  return Object.entries(env).some(([name, value]) => name.startsWith('SERVICE_') && value !== '');
}
