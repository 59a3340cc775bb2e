import type { Clock } from '../clock.ts';
import type { ConsumerConfig } from '../config.ts';
import type { RandomBytes } from '../store/event-id.ts';
import type { InboxContext } from '../store/inbox.ts';
import type { Table } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Outbox } from '../write/outbox.ts';
import type { Delivery } from './delivery.ts';
import type { Queue } from './queue.ts';

/** The shared dependencies of one consumer's processing. */
export interface ConsumerContext {
  readonly config: ConsumerConfig;
  readonly table: Table;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  readonly inbox: InboxContext;
  readonly outbox: Outbox;
}

/** One message on its way through its consumer; each processing step is a function of this context. */
export interface Received extends ConsumerContext {
  readonly delivery: Delivery;
}
