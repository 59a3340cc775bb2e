import { Readable } from 'node:stream';

/** What one request gets: a status with a JSON body, an error, or never an answer. */
export type StubAnswer =
  | { readonly status: number; readonly body: object; readonly headers?: Readonly<Record<string, string>> }
  | { readonly error: Error }
  | { readonly silent: true };

/** A request handler for any client of the AWS SDK: no network, answers as told, and every request counted. */
export function stubHandler(answer: (request: number) => StubAnswer) {
  const requests: unknown[] = [];
  return {
    requests,
    handle: async (
      request: { readonly body?: string | Uint8Array },
      options: { readonly abortSignal?: AbortSignal } = {},
    ) => {
      requests.push(JSON.parse(text(request.body)));
      const found = answer(requests.length);
      if ('error' in found) throw found.error;
      if ('silent' in found)
        return new Promise<never>((_, reject) => rejectOnAbort(options.abortSignal, reject));
      const headers = { 'content-type': 'application/x-amz-json-1.0', ...found.headers };
      const body = Readable.from([JSON.stringify(found.body)]);
      return { response: { statusCode: found.status, headers, body } };
    },
  };
}

/** The settings of a client that goes nowhere. */
export const STUB_CONFIGURATION = {
  region: 'us-east-1',
  endpoint: 'http://127.0.0.1:9',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
};

/** A retry strategy that tries everything, at once: a client's own waits pass in real time, and a manual clock runs on meanwhile. @param tries - with the first one */
export function triesAtOnce(tries: number) {
  const retryToken = (count: number) => ({ getRetryCount: () => count, getRetryDelay: () => 0 });
  return {
    mode: 'at-once',
    acquireInitialRetryToken: async () => retryToken(0),
    refreshRetryTokenForRetry: async (token: { getRetryCount(): number }) => {
      if (token.getRetryCount() === tries - 1) throw new Error(`Tried ${tries} times`);
      return retryToken(token.getRetryCount() + 1);
    },
    recordSuccess: () => {},
  };
}

function rejectOnAbort(signal: AbortSignal | undefined, reject: (error: Error) => void): void {
  const abort = () => reject(Object.assign(new Error('Request aborted'), { name: 'AbortError' }));
  signal?.addEventListener('abort', abort, { once: true });
}

function text(body: string | Uint8Array = '{}'): string {
  return typeof body === 'string' ? body : new TextDecoder().decode(body);
}
