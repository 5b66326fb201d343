// Lets Node run the TypeScript sources: node --import ./build/typescript.mjs test/scale/run.ts
import { register } from 'node:module';

register('./typescript-hooks.mjs', import.meta.url);
