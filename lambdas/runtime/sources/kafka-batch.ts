import { createHash } from 'node:crypto';
import { type Clock, withDeadline } from '../base/clock.ts';
import { kafkaErrorType } from '../base/kafka-error-type.ts';
import type { MessageAnswer } from './message-answer.ts';

/** The part of a message of `kafkajs` that {@link kafkaRun} uses. */
export interface KafkaMessage {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly offset: string;
  readonly timestamp: string;
  readonly headers?: Readonly<Record<string, Buffer | string | (Buffer | string)[] | undefined>> | undefined;
}

/** The part of the payload of `eachBatch` of `kafkajs` that {@link kafkaRun} uses. */
export interface KafkaBatch {
  readonly batch: {
    readonly topic: string;
    readonly partition: number;
    readonly messages: readonly KafkaMessage[];
  };
  resolveOffset(offset: string): void;
  commitOffsetsIfNecessary(): Promise<void>;
  heartbeat(): Promise<void>;
  pause(): () => void;
  isRunning(): boolean;
  isStale(): boolean;
}

/** A message that this process has done before the ones in front of it, or that waits for its next attempt. */
interface Held {
  /** With the offset, it identifies the message: a topic that was deleted and created again uses its offsets again. */
  readonly content: string;
  /** Kafka counts no deliveries. */
  readonly receives: number;
  /** The time of the next attempt, epoch milliseconds; undefined if the message is done. */
  readonly dueAt: number | undefined;
}

/** The messages of a partition that this process holds, by their offsets. */
export type HeldMessages = Map<string, Held>;

/** Runs a batch of a partition. */
export interface BatchRun {
  readonly clock: Clock;
  /** The number of messages that run at a time. 1: in the order of the partition; more: in the order of each key. */
  readonly concurrency: number;
  /** True when no further message may start. */
  readonly isOver: () => boolean;
  readonly held: HeldMessages;
  /** @param receives - the deliveries of the message, including this one */
  readonly process: (message: KafkaMessage, receives: number) => Promise<MessageAnswer>;
}

/** The interval at which `kafkajs` may send a heartbeat, which it does once per its own `heartbeatInterval`, milliseconds. */
const BEAT_MS = 1_000;

/** This process is not, or no longer for long, the owner of its partitions: `kafkajs` joins the group again once the batch has returned. */
const LOST =
  /^(REBALANCE_IN_PROGRESS|ILLEGAL_GENERATION|UNKNOWN_MEMBER_ID|FENCED_INSTANCE_ID|NOT_COORDINATOR_FOR_GROUP)$/;

/**
 * Runs the messages of a batch, and returns when those that were started have ended.
 *
 * The invariant: an offset is resolved, and then committed, only if every message up to it is done. A message that is done behind one that is not
 * is remembered by this process; after a crash or a rebalance its redelivery is a duplicate for the inbox.
 *
 * @throws the first error of `process`, after the messages that run: those that are not done stay unresolved, and are delivered again
 * @returns the time at which the first message is due that waits; undefined if none waits or the partition was lost
 */
export async function runBatch(payload: KafkaBatch, run: BatchRun): Promise<number | undefined> {
  const { clock, held } = run;
  const { messages } = payload.batch;
  let isLost = false;
  let failure: { readonly error: unknown } | undefined;
  let beatAt = clock.now();
  const beat = async () => {
    beatAt = clock.now();
    try {
      await payload.heartbeat();
      await payload.commitOffsetsIfNecessary();
    } catch (error) {
      if (LOST.test(kafkaErrorType(error))) isLost = true; // any other failure can pass: the session is longer
    }
  };
  const goesOn = () =>
    failure === undefined && !isLost && !run.isOver() && payload.isRunning() && !payload.isStale();
  const prefix = prefixOf(payload, held);
  let firstDueAt: number | undefined;
  /** @returns true if the next message of its lane may start */
  const runMessage = async (index: number, message: KafkaMessage): Promise<boolean> => {
    const before = held.get(message.offset);
    let dueAt = before?.dueAt;
    if (dueAt === undefined || dueAt <= clock.now()) {
      // From 2: an earlier process may have received it, too.
      const receives = before === undefined ? 2 : before.receives + 1;
      const answer = await run.process(message, receives);
      if (answer.kind !== 'retry') {
        prefix.done(index);
        if (clock.now() - beatAt >= BEAT_MS) await beat();
        return true;
      }
      dueAt = clock.now() + answer.afterMs;
      held.set(message.offset, { content: contentOf(message), receives, dueAt });
    }
    firstDueAt = Math.min(firstDueAt ?? dueAt, dueAt);
    return false; // its followers wait, too
  };

  const lanes = lanesOf(messages, run.concurrency, prefix.isDone);
  const runner = async () => {
    // A lane with more messages goes to the end, so that messages start about in the order of their offsets.
    for (let lane = lanes.shift(); lane !== undefined && goesOn(); lane = lanes.shift()) {
      const index = lane.shift();
      const message = index === undefined ? undefined : messages[index];
      if (index === undefined || message === undefined) continue;
      const isDone = await runMessage(index, message).catch((error: unknown) => {
        failure ??= { error };
        return false;
      });
      if (isDone) lanes.push(lane);
    }
  };
  await beat();
  await beating(clock, beat, () =>
    Promise.all(Array.from({ length: Math.min(run.concurrency, lanes.length) }, runner)),
  );
  if (failure !== undefined) throw failure.error;
  return goesOn() ? firstDueAt : undefined;
}

/** The messages of a batch that are not done, by their indexes: each lane in its order, and the lanes beside one another. */
function lanesOf(
  messages: readonly KafkaMessage[],
  concurrency: number,
  isDone: (index: number) => boolean,
): number[][] {
  const lanes = new Map<string, number[]>();
  for (const [index, { key, offset }] of messages.entries()) {
    if (isDone(index)) continue;
    const keyLane = key === null ? `offset ${offset}` : `key ${key.toString('latin1')}`;
    const name = concurrency === 1 ? '' : keyLane;
    const lane = lanes.get(name);
    if (lane === undefined) lanes.set(name, [index]);
    else lane.push(index);
  }
  return [...lanes.values()];
}

/** The messages of a batch that are done; it resolves the last offset of those without a gap in front of them. */
function prefixOf(payload: KafkaBatch, held: HeldMessages) {
  const { messages } = payload.batch;
  const first = Number(messages[0]?.offset);
  for (const offset of held.keys()) if (Number(offset) < first) held.delete(offset);
  const isDone = messages.map((message) => {
    const before = held.get(message.offset);
    if (before === undefined) return false;
    const isSame = before.content === contentOf(message);
    if (!isSame) held.delete(message.offset);
    return isSame && before.dueAt === undefined;
  });
  let end = 0;
  const resolve = () => {
    const from = end;
    for (; isDone[end]; end += 1) held.delete(messages[end]?.offset ?? '');
    const last = messages[end - 1];
    if (last !== undefined && end > from) payload.resolveOffset(last.offset);
  };
  resolve();
  return {
    isDone: (index: number) => isDone[index] === true,
    done: (index: number) => {
      const message = messages[index];
      isDone[index] = true;
      if (message !== undefined && index > end)
        held.set(message.offset, { content: contentOf(message), receives: 0, dueAt: undefined });
      resolve();
    },
  };
}

/** The hash of a message. Its time is not enough: many are sent in a millisecond, and the senders set it. */
function contentOf({ timestamp, key, value, headers }: KafkaMessage): string {
  const named = JSON.stringify([timestamp, key?.toString('latin1') ?? null, value === null, headers]);
  return createHash('sha256')
    .update(named)
    .update(value ?? '')
    .digest('base64');
}

/** Calls `beat`, which does not throw, at intervals while some work runs. */
async function beating<T>(clock: Clock, beat: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  const working = work();
  const beats = async (): Promise<T> => {
    await beat();
    return withDeadline(clock, BEAT_MS, working, beats);
  };
  return withDeadline(clock, BEAT_MS, working, beats);
}
