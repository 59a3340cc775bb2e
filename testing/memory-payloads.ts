import { ABOVE_MAX_BYTES, type PayloadConfig } from '../lambdas/runtime/base/payload-config.ts';
import type { Payloads } from '../lambdas/runtime/events/payloads.ts';
import { payloadsIn } from '../lambdas/runtime/store/payload-objects.ts';

/** Options of {@link memoryPayloads}. */
export interface MemoryPayloadsOptions extends Partial<PayloadConfig> {
  /** Called for every call: a returned error is what S3 answers. @default no call fails */
  readonly failCall?: ((call: 'get' | 'put', key: string) => unknown) | undefined;
}

/** The payloads of a Mailroom in memory. */
export interface MemoryPayloads extends Payloads {
  /** The objects, by their keys: delete one to erase it, or set another content. */
  readonly objects: Map<string, Uint8Array>;
}

/**
 * Creates the bucket of a Mailroom's payloads in memory, for `createOutbox` and `createConsumer`. It verifies what it reads as the one in S3 does.
 *
 * @param options.aboveBytes - the threshold @default 384 KB, the largest one
 *
 * @example
 * ```ts
 * const payloads = memoryPayloads({ aboveBytes: 1024 });
 * const outbox = createOutbox({ config, table, payloads });
 * const handler = createConsumer({ config, table, queue, handlers, payloads });
 * ```
 */
export function memoryPayloads(options: MemoryPayloadsOptions = {}): MemoryPayloads {
  const {
    bucket = 'payloads',
    aboveBytes = ABOVE_MAX_BYTES,
    aheadDays = 30,
    inline = [],
    failCall,
  } = options;
  const objects = new Map<string, Uint8Array>();
  const answer = (call: 'get' | 'put', key: string) => {
    const error = failCall?.(call, key);
    if (error !== undefined) throw error;
  };
  const store = {
    put: async (key: string, content: Uint8Array) => {
      answer('put', key);
      objects.set(key, content);
    },
    get: async (key: string) => {
      answer('get', key);
      const content = objects.get(key);
      return content && { bytes: content.byteLength, content: async () => content };
    },
  };
  return { objects, ...payloadsIn(store, { bucket, aboveBytes, aheadDays, inline }) };
}
