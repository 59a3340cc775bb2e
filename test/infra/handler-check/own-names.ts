// As code does that must run in ESM with and without a bundler.
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const __filename = fileURLToPath(import.meta.url);
const __dirname = dirname(__filename);

const isWhole = [require('node:path').basename(__filename), __dirname].every((name) => name.length > 0);

export const handler = Object.assign(async () => {}, {
  handles: isWhole ? [{ source: 'orders', type: 'OrderPlaced' }] : [],
});
