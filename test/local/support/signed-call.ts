import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { STSClient } from '@aws-sdk/client-sts';
import { SignatureV4 } from '@smithy/signature-v4';
import type { OrdersCall } from '../../../demo/shop.ts';
import { callFunctionUrl } from '../../../localstack/function-url.ts';

/** The hash that {@link SignatureV4} takes, by Node.js. */
class Sha256 {
  private readonly hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.hash =
      secret === undefined
        ? createHash('sha256')
        : createHmac('sha256', typeof secret === 'string' ? secret : bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.hash.update(typeof data === 'string' ? data : bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.hash.digest();
  }
}

function bytesOf(data: ArrayBuffer | ArrayBufferView): Uint8Array {
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

/**
 * Makes a caller of function URLs that signs its requests, as an API with the authorization `AWS_IAM` requires. The credentials and
 * the region are those of the environment.
 *
 * @param endpoint - the engine's URL; empty for an account, where each URL names its own host
 *
 * @example
 * ```ts
 * const call = signedCall('');
 * await call(new URL('orders', OrdersUrl), { method: 'POST', headers, body });
 * ```
 */
export function signedCall(endpoint: string): OrdersCall {
  const { credentials, region } = new STSClient({}).config;
  const signer = new SignatureV4({ service: 'lambda', region, credentials, sha256: Sha256 });
  return async (url, { method = 'GET', headers = {}, body }) => {
    const signed = await signer.sign({
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: { ...headers, host: url.host },
      body,
    });
    return await callFunctionUrl(endpoint || url.origin, url, { method, headers: signed.headers, body });
  };
}
