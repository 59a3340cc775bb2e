import type { Arrived } from '../clients/arrived.ts';
import type { Broker } from '../servers/broker.ts';
import type { TargetPlace } from '../targets/target-of.ts';

/** The name of the group or the durable consumer that consumes a topic, stream or queue. */
export const CONSUMER = 'consumer';

/**
 * The largest message. Every broker's default is larger: at these, it refuses an event that SQS accepts.
 */
export const MESSAGE_MAX_BYTES = 20_000;

/** The place where the dead letters of a consumed place are kept. */
export function deadOf(name: string): string {
  return `${name}-dead`;
}

/** A running broker with topics, streams, or exchanges each with a queue of the same name. */
export interface Places extends Broker {
  readonly create: (name: string) => Promise<void>;
  /** Also creates what its consumer and its dead letters need. */
  readonly createSource: (name: string) => Promise<void>;
  readonly placeOf: (name: string) => TargetPlace;
  /** The same place with the wrong password. */
  readonly deniedPlaceOf: (name: string) => TargetPlace;
  readonly publish: (name: string, body: string) => Promise<void>;
  /** Every message so far. */
  readonly arrived: (name: string) => Promise<Arrived[]>;
  /** The number of messages that the consumer has not acknowledged; in RabbitMQ, without those that it holds. */
  readonly waiting: (name: string) => Promise<number>;
}
