import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

type Resolve = (host: string) => Promise<{ address: string; family: number }[]>;

/** The rules of the page's `createPost`. */
export interface PostRules {
  readonly protocol?: string;
  readonly isAllowed?: (address: string) => boolean;
  readonly resolve?: Resolve;
  readonly timeoutMs?: number;
}

/** The page's function that posts a webhook. */
export type PostWebhook = (
  url: string,
  call: { headers: Record<string, string>; body: string; signal: AbortSignal },
) => Promise<{ status: number; headers: Record<string, unknown> }>;

/** A server of a customer. */
export async function receiver(respond: (request: IncomingMessage, response: ServerResponse) => void) {
  const requests: { url: string | undefined; headers: IncomingMessage['headers']; body: string }[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    requests.push({ url: request.url, headers: request.headers, body });
    respond(request, response);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, requests };
}

/** The rules of the page, but for a server on this machine. `hosts`: the names that were resolved */
export function localRules(change: PostRules = {}) {
  const hosts: string[] = [];
  const resolve: Resolve = async (host) => {
    hosts.push(host);
    return [{ address: '127.0.0.1', family: 4 }];
  };
  return { hosts, rules: { protocol: 'http:', isAllowed: () => true, resolve, ...change } };
}
