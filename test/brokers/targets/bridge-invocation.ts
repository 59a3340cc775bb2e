import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { SQSBatchResponse, SQSRecord } from 'aws-lambda';
import type { TargetPlace } from './target-of.ts';

const run = promisify(execFile);

const child = fileURLToPath(new URL('bridge-invocation.child.ts', import.meta.url));

/** One invocation of a bridge in its own process, on a table that outlives it. */
export interface BridgeInvocation {
  /** The endpoint of the local AWS with the table. */
  readonly endpoint: string;
  readonly tableName: string;
  readonly place: TargetPlace;
  readonly record: SQSRecord;
  /** The bridge's clock is this much ahead, so that the lease of a killed process has ended. @default 0 */
  readonly laterMs?: number;
  /** Kills the process, as `kill -9` does, when the target has accepted the event and the row does not say so yet. */
  readonly isKilled?: boolean;
}

/** The message of an event as SQS delivers it. */
export function recordOf(body: string, receives: number): SQSRecord {
  return {
    messageId: createHash('md5').update(body).digest('hex'),
    receiptHandle: randomUUID(),
    body,
    attributes: {
      ApproximateReceiveCount: String(receives),
      ApproximateFirstReceiveTimestamp: String(Date.now()),
      SentTimestamp: String(Date.now()),
      SenderId: 'AIDAMEMORY',
    },
    messageAttributes: {},
    md5OfBody: createHash('md5').update(body).digest('hex'),
    eventSource: 'aws:sqs',
    eventSourceARN: 'arn:aws:sqs:us-east-1:000000000000:bridge',
    awsRegion: 'us-east-1',
  };
}

/**
 * Invokes a bridge in another process.
 *
 * @param dir - a folder for the input of the process
 * @returns its response, or the signal that ended the process
 */
export async function invokeBridge(
  dir: string,
  invocation: BridgeInvocation,
): Promise<SQSBatchResponse | string> {
  const input = join(dir, `${randomUUID()}.json`);
  await writeFile(input, JSON.stringify(invocation));
  try {
    const { stdout } = await run(process.execPath, ['--import', 'tsx', child, input]);
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as SQSBatchResponse;
  } catch (error) {
    const { signal } = error as { signal?: string | null };
    if (signal) return signal;
    throw error;
  }
}
