import { errorCode } from '../base/errors.ts';
import { PAYLOADS_VARIABLE, type PayloadConfig, readPayloadConfig } from '../base/payload-config.ts';
import type { Payloads } from '../events/payloads.ts';
import { type PayloadObjects, payloadsIn } from './payload-objects.ts';

/** The part of the client `S3` of `@aws-sdk/client-s3` that payloads use. */
export interface PayloadClient {
  putObject(
    input: {
      Bucket: string;
      Key: string;
      Body: Uint8Array;
      ContentType: string;
      ChecksumSHA256: string;
      IfNoneMatch: string;
    },
    options?: { abortSignal?: AbortSignal },
  ): Promise<unknown>;
  getObject(
    input: { Bucket: string; Key: string },
    options?: { abortSignal?: AbortSignal },
  ): Promise<{
    ContentLength?: number | undefined;
    Body?: { transformToByteArray(): Promise<Uint8Array>; destroy?(): unknown } | undefined;
  }>;
}

/** Dependencies of {@link s3Payloads}. */
export interface S3PayloadsDeps {
  /** `new S3(clientSettings)` */
  readonly client: PayloadClient;
  /** From `readPayloadConfig(process.env)`. */
  readonly config: PayloadConfig;
}

/** The longest time of a call with its retries, milliseconds: a slow body must not use up the function's time. */
const CALL_MAX_MS = 10_000;

/** Keeps payloads in S3, for a function that is composed without `lambdaConsumer` and `lambdaOutbox`. */
export function s3Payloads({ client, config }: S3PayloadsDeps): Payloads {
  return payloadsIn(objectsIn(client, config.bucket), config);
}

/**
 * Lets a function keep payloads above the threshold of its Mailroom in S3, and load them. The function bundles the client of S3 because its own code
 * imports it; others do not.
 *
 * @param client - `new S3(clientSettings)`
 * @returns an option of `lambdaConsumer` and `lambdaOutbox`. Without `payloads` in the function's Mailroom, it does nothing
 * @throws `BAD_CONFIG`, when it is called, if a variable is missing or out of range
 *
 * @example
 * ```ts
 * const payloads = lambdaPayloads(new S3(clientSettings));
 * export const handler = lambdaConsumer([leased(ReportMade, archive)], { payloads });
 * ```
 */
export function lambdaPayloads(client: PayloadClient): () => Payloads | undefined {
  return () =>
    process.env[PAYLOADS_VARIABLE] === undefined
      ? undefined
      : s3Payloads({ client, config: readPayloadConfig(process.env) });
}

function objectsIn(client: PayloadClient, bucket: string): PayloadObjects {
  return {
    put: async (key, content, sha256) => {
      const request = {
        Bucket: bucket,
        Key: key,
        Body: content,
        ContentType: 'application/json',
        ChecksumSHA256: Buffer.from(sha256, 'hex').toString('base64'),
        IfNoneMatch: '*',
      };
      const abortSignal = AbortSignal.timeout(CALL_MAX_MS);
      const put = () => client.putObject(request, { abortSignal });
      try {
        // Another try of this call is under way in S3: the client does not repeat the one that is refused for it.
        await put().catch((error: unknown) => {
          if (errorCode(error) !== 'ConditionalRequestConflict') throw error;
          return put();
        });
      } catch (error) {
        // The id is new, so the object is that of an earlier try of this call. Its content is verified when it is read.
        if (errorCode(error) !== 'PreconditionFailed') throw error;
      }
    },
    get: async (key) => {
      const abortSignal = AbortSignal.timeout(CALL_MAX_MS);
      try {
        const { ContentLength = 0, Body } = await client.getObject(
          { Bucket: bucket, Key: key },
          { abortSignal },
        );
        return {
          bytes: ContentLength,
          content: async () => (await Body?.transformToByteArray()) ?? new Uint8Array(),
          // A body that is not read holds its connection, of which the client has 50.
          discard: () => void Body?.destroy?.(),
        };
      } catch (error) {
        // Without s3:ListBucket, S3 denies an object that does not exist.
        if (errorCode(error) === 'NoSuchKey') return undefined;
        throw error;
      }
    },
  };
}
