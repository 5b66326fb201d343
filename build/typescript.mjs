// Lets Node run the TypeScript sources: node --import ./build/typescript.mjs <file>
import { register } from 'node:module';

// Node 26 warns that register() is deprecated in favour of registerHooks(), which Node 20 does not have.
const { noDeprecation = false } = process;
process.noDeprecation = true;
register('./typescript-hooks.mjs', import.meta.url);
process.noDeprecation = noDeprecation;
