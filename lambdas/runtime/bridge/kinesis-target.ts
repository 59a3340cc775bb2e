import { bridgeAddress } from '../base/bridge-address.ts';
import { requireGiven } from '../base/given-names.ts';
import { awsRefusal, keyOf, sendBatchOf } from './aws-answers.ts';
import type { BridgeTarget } from './bridge-target.ts';
import { checkSize } from './message-grammar.ts';

/** The part of the client `Kinesis` of `@aws-sdk/client-kinesis` that {@link kinesisTarget} uses. */
export interface KinesisSender {
  putRecords(input: {
    StreamName?: string;
    StreamARN?: string;
    Records: { Data: Uint8Array; PartitionKey: string }[];
  }): Promise<{
    readonly Records:
      | readonly {
          ShardId?: string | undefined;
          SequenceNumber?: string | undefined;
          ErrorCode?: string | undefined;
          ErrorMessage?: string | undefined;
        }[]
      | undefined;
  }>;
}

/** Kinesis quotas: 500 records and 10 MiB in a call; a record is at most 1 MiB with its key, unless the stream's limit is raised. */
const LIMITS = { entries: 500, bytes: 10 * 1024 * 1024, entryBytes: 1024 * 1024 };

/** A partition key (Kinesis API reference, PutRecordsRequestEntry): characters of Unicode, so no half of a surrogate pair. */
const PARTITION_KEY = /^\P{Cs}{1,256}$/u;

/** The part of a stream's ARN before its name. */
const STREAM_ARN = /^arn:[^:]+:kinesis:[^:]*:[^:]*:stream\//;

/**
 * Forwards to a Kinesis data stream. The partition key is the aggregate id (its SHA-256 if it is empty, has more than 256 characters, or half of a surrogate pair). A record has no
 * headers, and Kinesis does not deduplicate.
 *
 * @param target.client - `new Kinesis(clientSettings)`; for a stream in another region, `new Kinesis({ ...clientSettings, region })`
 * @param target.streamName - the name of the stream, or its ARN: a name is one of the function's own account @default the environment, as `forwardsTo` sets it
 */
export function kinesisTarget(target: {
  readonly client: KinesisSender;
  readonly streamName?: string | undefined;
}): BridgeTarget {
  requireGiven('kinesisTarget', target, 'client');
  const stream = () => bridgeAddress(target.streamName, 'streamName');
  return {
    name: () => `stream ${stream().replace(STREAM_ARN, '')}`,
    limits: LIMITS,
    send: async (entries) => {
      const address = stream();
      const to = STREAM_ARN.test(address) ? { StreamARN: address } : { StreamName: address };
      return sendBatchOf(
        entries,
        ({ body, event }) => {
          const [Data, PartitionKey] = [Buffer.from(body), keyOf(event.aggregateId, PARTITION_KEY)];
          checkSize(Data.byteLength + Buffer.byteLength(PartitionKey), LIMITS.entryBytes);
          return { Data, PartitionKey };
        },
        async (messages) => {
          const answer = await target.client.putRecords({ ...to, Records: [...messages] });
          return (answer.Records ?? []).map(({ ShardId, SequenceNumber, ErrorCode, ErrorMessage }) =>
            ShardId === undefined || SequenceNumber === undefined || ErrorCode !== undefined
              ? awsRefusal(ErrorCode, ErrorMessage)
              : { ok: true, place: { shard: ShardId, sequence: SequenceNumber } },
          );
        },
      );
    },
  };
}
