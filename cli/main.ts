import { EXIT } from './exit-code.ts';
import { runMailroom } from './program.ts';

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());

process.exitCode = await runMailroom(process.argv.slice(2), {
  env: process.env,
  interactive: process.stderr.isTTY === true,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  signal: stop.signal,
  exitCode: EXIT.ok,
});
