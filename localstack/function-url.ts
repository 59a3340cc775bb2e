import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';

/** The timeout of one answer, in milliseconds: the first one waits for the function to start, on a cold engine. */
const ANSWER_TIMEOUT_MS = 60_000;

/** A request to a function URL. */
export interface FunctionUrlRequest {
  /** @default GET */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A response of a function URL. */
export interface FunctionUrlAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Calls a function URL of a local engine. The host of the URL need not resolve: the request goes to the engine, which finds the
 * function by the `Host` header. (`fetch` ignores that header.)
 *
 * @param endpoint - the engine's URL
 * @param url - the function URL from the stack's output, with the path to call
 *
 * @example
 * ```ts
 * await callFunctionUrl('http://127.0.0.1:4566', 'https://abc.lambda-url.us-east-1.on.aws/orders/42');
 * ```
 */
export async function callFunctionUrl(
  endpoint: string,
  url: string | URL,
  { method = 'GET', headers = {}, body }: FunctionUrlRequest = {},
): Promise<FunctionUrlAnswer> {
  const { host, pathname, search } = new URL(url);
  const target = new URL(endpoint);
  [target.pathname, target.search] = [pathname, search];
  const send = target.protocol === 'https:' ? httpsRequest : httpRequest;
  return await new Promise((resolve, reject) => {
    const request = send(target, {
      method,
      headers: { ...headers, host },
      agent: false, // the engine may close an idle connection at any moment
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    request.once('error', reject);
    request.once('response', (response) => {
      text(response).then(
        (said) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: said }),
        reject,
      );
    });
    request.end(body);
  });
}

/**
 * Converts a function URL of the engine into one that a browser can open. MiniStack returns URLs in AWS's own form, which do not
 * resolve, but it also answers them under its own address.
 *
 * @param endpoint - the engine's URL
 * @param url - the function URL from the stack's output
 *
 * @example
 * ```ts
 * reachableUrl('http://127.0.0.1:4566', 'https://abc.lambda-url.us-east-1.on.aws/');
 * // 'http://127.0.0.1:4566/_aws/lambda-url/abc/'
 * ```
 */
export function reachableUrl(endpoint: string, url: string): string {
  const { hostname, pathname, search } = new URL(url);
  const id = /^([a-z0-9]+)\.lambda-url\.[a-z0-9-]+\.on\.aws$/.exec(hostname)?.[1];
  return id ? `${endpoint}/_aws/lambda-url/${id}${pathname}${search}` : url;
}
