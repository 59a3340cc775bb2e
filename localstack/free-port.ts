import { createServer } from 'node:net';

/**
 * Below the ports that operating systems give out by themselves (from 32768 on Linux, 49152 elsewhere): a server that starts seconds later
 * finds its port still unused.
 */
const FIRST = 16_000;
const COUNT = 16_000;

/** Processes have different ids, so those that ask at a time begin at different ports. A prime, so that their next ones differ, too. */
let asked = process.pid * 61;

/** Finds an unused port of the loopback address. No two calls of a process return the same. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < COUNT; tried += 1) {
    const port = FIRST + (asked++ % COUNT);
    if (await isFree(port)) return port;
  }
  throw new Error(`No port from ${FIRST} to ${FIRST + COUNT - 1} is free.`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listens = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (listens) await new Promise((resolve) => server.close(resolve));
  return listens;
}
