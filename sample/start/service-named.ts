/** Whether the environment, including .env, configures a service. */
export function isServiceNamed(env: NodeJS.ProcessEnv = process.env): boolean {
  return Object.entries(env).some(([name, value]) => name.startsWith('SERVICE_') && value !== '');
}
