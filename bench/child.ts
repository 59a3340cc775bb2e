import { createServer } from 'node:http';
import { CALL_MS } from './assumptions.ts';

/** The argument of a program that `processes.ts` started. */
export function argument<T>(): T {
  return JSON.parse(process.argv[2] ?? '') as T;
}

/** A response of a served request. */
export interface ServedResponse {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/**
 * Serves requests, each after the fixed delay of a call, which includes the time to create the answer. Sends the endpoint to the
 * parent process, and ends with it.
 */
export function serve(handle: (target: string, body: Buffer) => Promise<ServedResponse>): void {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const arrivedAt = performance.now();
      const target = String(request.headers['x-amz-target']);
      const { statusCode, headers, body } = await handle(target, Buffer.concat(chunks));
      const length = { 'content-length': Buffer.byteLength(body) };
      const reply = () => response.writeHead(statusCode, { ...headers, ...length }).end(body);
      setTimeout(reply, Math.max(1, CALL_MS - (performance.now() - arrivedAt)));
    });
  });
  // Longer than any client's pause: a connection that is closed as a request arrives is a failed call.
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (typeof address === 'object' && address !== null)
      process.send?.({ endpoint: `http://127.0.0.1:${address.port}` });
  });
  process.once('disconnect', () => process.exit());
}
