// Lets Node run the TypeScript sources: node --import ./build/typescript.mjs <file>
import { register } from 'node:module';

register('./typescript-hooks.mjs', import.meta.url);
