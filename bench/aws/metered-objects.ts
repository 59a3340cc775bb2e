import type { PayloadClient } from '../../lambdas/runtime/store/s3-payloads.ts';

/** A bucket in memory, whose requests are counted. */
export interface MeteredObjects {
  /** In place of the client of S3. */
  readonly client: PayloadClient;
  /** The size of all objects. */
  bytes(): number;
}

/** @param record - called for each request. S3 bills one, whatever the size of its object (S3 pricing, requests) */
export function createMeteredObjects(record: (operation: 'PutObject' | 'GetObject') => void): MeteredObjects {
  const objects = new Map<string, Uint8Array>();
  return {
    client: {
      putObject: async ({ Key, Body }) => {
        record('PutObject');
        objects.set(Key, Body);
      },
      getObject: async ({ Key }) => {
        record('GetObject');
        const content = objects.get(Key);
        if (content === undefined) throw new Error(`The metered AWS has no object ${Key}`);
        return { ContentLength: content.byteLength, Body: { transformToByteArray: async () => content } };
      },
    },
    bytes: () => [...objects.values()].reduce((sum, { byteLength }) => sum + byteLength, 0),
  };
}
