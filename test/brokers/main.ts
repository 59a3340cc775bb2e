import '../../localstack/quiet-sdk.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { RECEIPTS_FILE } from './receipt-reporter.ts';

/** `npm run test:brokers` and `npm run test:cdc`, with the arguments of vitest. `--json` prints what {@link RECEIPTS_FILE} contains, and everything else to stderr. */
const given = process.argv.slice(2);
const isJson = given.includes('--json');
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
const config = given.includes('--config') ? [] : ['--config', 'vitest.brokers.config.ts'];
const args = ['run', ...config, ...given.filter((each) => each !== '--json')];

rmSync(RECEIPTS_FILE, { force: true });
const tests = spawn(process.execPath, [vitest, ...args], { stdio: ['inherit', isJson ? 2 : 1, 2] });
const [code] = await once(tests, 'exit');
if (isJson) process.stdout.write(readFileSync(RECEIPTS_FILE, 'utf8'));
process.exitCode = code ?? 1;
