import '../../localstack/quiet-sdk.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { RECEIPTS_FILE } from './receipt-reporter.ts';

/** `npm run test:brokers`, with the arguments of vitest. `--json` prints what {@link RECEIPTS_FILE} contains, and everything else to stderr. */
const given = process.argv.slice(2);
const isJson = given.includes('--json');
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
const args = ['run', '--config', 'vitest.brokers.config.ts', ...given.filter((each) => each !== '--json')];

rmSync(RECEIPTS_FILE, { force: true });
const tests = spawn(process.execPath, [vitest, ...args], { stdio: ['inherit', isJson ? 2 : 1, 2] });
const [code] = await once(tests, 'exit');
if (isJson) process.stdout.write(readFileSync(RECEIPTS_FILE, 'utf8'));
process.exitCode = code ?? 1;
