// `npm start`: runs the sample from its TypeScript sources, and ends it with npm.
import './typescript.mjs';

const { endWithNpm } = await import('../lib/cli/command.ts');
if (process.env.npm_lifecycle_event !== undefined) endWithNpm();
await import('../sample/main.ts');
