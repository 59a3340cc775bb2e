import { text } from 'node:stream/consumers';
import { runMailroom } from './program.ts';
import { EXIT } from './terminal/io.ts';

// The first Ctrl-C stops a command where it is safe; the second one ends the process.
const stop = new AbortController();
process.once('SIGINT', () => stop.abort());

// The reader closed the pipe: `mailroom why … --story | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  throw error;
});

/** Until it is ended, stdin keeps the process alive. */
function onLine(listener: () => void): () => void {
  process.stdin.on('data', listener);
  return () => {
    process.stdin.off('data', listener);
    process.stdin.pause();
  };
}

process.exitCode = await runMailroom(process.argv.slice(2), {
  env: process.env,
  outIsTerminal: process.stdout.isTTY === true,
  errIsTerminal: process.stderr.isTTY === true,
  outSize: () =>
    process.stdout.isTTY === true
      ? { rows: process.stdout.rows, columns: process.stdout.columns }
      : undefined,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  ...(process.stdin.isTTY === true && { onLine }),
  input: () => text(process.stdin),
  signal: stop.signal,
  exitCode: EXIT.ok,
});
