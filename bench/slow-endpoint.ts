import { createServer, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../localstack/free-port.ts';

/** When a request arrived and when it was answered, milliseconds. */
interface RequestTimes {
  readonly at: number;
  readonly until: number;
}

/** An endpoint that answers each request late, and so shows which requests wait for others. */
interface SlowEndpoint {
  readonly url: string;
  /** Returns the requests since the last call. */
  taken(): { readonly requests: number; readonly chain: number };
  close(): void;
}

/** A time long enough to start all requests that do not wait for another before the first of them is answered. */
const DELAY_MS = 150;

/** Opens an endpoint in front of another one. */
export async function openSlowEndpoint(target: string): Promise<SlowEndpoint> {
  let times: RequestTimes[] = [];
  const server = createServer(async (received, response) => {
    const at = performance.now();
    const chunks: Buffer[] = [];
    for await (const chunk of received) chunks.push(chunk);
    await sleep(DELAY_MS);
    const { method, headers } = received;
    const forwarded = request(new URL(received.url ?? '/', target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
      answer.on('end', () => times.push({ at, until: performance.now() }));
    });
    forwarded.on('error', (error) => response.destroy(error));
    forwarded.end(Buffer.concat(chunks));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${port}`,
    taken: () => {
      const all = times;
      times = [];
      return { requests: all.length, chain: chainOf(all) };
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The most of the requests of which each began after the one before it was answered. */
function chainOf(requests: readonly RequestTimes[]): number {
  let links = 0;
  let free = Number.NEGATIVE_INFINITY;
  for (const { at, until } of requests.toSorted((a, b) => a.until - b.until)) {
    if (at < free) continue;
    links += 1;
    free = until;
  }
  return links;
}
