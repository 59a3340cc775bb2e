import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type { Clock } from './clock.ts';
import type { ConsumerConfig } from './config.ts';
import type { AnyEventDefinition, EventOf } from './event.ts';
import type { Commit } from './outbox.ts';
import type { Queue } from './queue.ts';
import type { Table } from './table.ts';

/** What a leased handler is given beside its event. */
export interface LeasedContext {
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  /** Aborted when the lease is lost or the function's time is nearly up. */
  readonly signal: AbortSignal;
  /** Milliseconds until the function is stopped. */
  remainingMs(): number;
  /** Runs a side effect outside DynamoDB under its own stable idempotency key. */
  once<T>(name: string, effect: (idempotencyKey: string, signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Commits domain writes, new events and this message's PROCESSED in one transaction. */
  commit(commit: Commit): Promise<void>;
}

/** What a transactional handler is given beside its event. */
export interface TransactionalContext {
  readonly attempt: number;
  remainingMs(): number;
}

/** One handler of a consumer, made by {@link leased} or {@link transactional}. */
export interface Handler {
  readonly kind: 'leased' | 'transactional';
  readonly definition: AnyEventDefinition;
}

export declare function leased<E extends AnyEventDefinition>(
  definition: E,
  handle: (event: EventOf<E>, ctx: LeasedContext) => Promise<unknown>,
): Handler;

export declare function transactional<E extends AnyEventDefinition>(
  definition: E,
  handle: (event: EventOf<E>, ctx: TransactionalContext) => Promise<Commit>,
): Handler;

export interface ConsumerDeps {
  readonly config: ConsumerConfig;
  readonly table: Table;
  readonly queue: Queue;
  readonly handlers: readonly Handler[];
  readonly clock?: Clock;
}

export declare function createConsumer(deps: ConsumerDeps): (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>;
