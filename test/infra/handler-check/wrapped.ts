import { appendFileSync } from 'node:fs';
// @ts-expect-error -- a library without types
import library from './library.cjs';

/** A wrapped handler. What the test chooses by the environment: whether it passes `handles` on, and how its import ends. */
const { HANDLES, FAILS, ENDS, COUNTED } = process.env;
console.log('A bundle may print when it is imported.');
if (COUNTED) appendFileSync(COUNTED, 'imported\n');
if (!library.isNamed) throw new Error('The library in CommonJS has other names.');
if (FAILS) throw new Error(FAILS);
if (ENDS) process.exit(0);
setInterval(() => {}, 60_000);
export const handler = Object.assign(async () => ({}), HANDLES ? { handles: JSON.parse(HANDLES) } : {});
