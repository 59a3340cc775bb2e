import type { BridgeTarget } from '../../lambdas/runtime/bridge.ts';
import type { Handler } from '../../lambdas/runtime/index.ts';
import type { InboxProcessor } from '../../lambdas/runtime/sources.ts';
import type { NatsAddress } from '../../test/brokers/servers/nats-broker.ts';

/** A stream, exchange with its queue, or topic of a running broker, as JSON: it is passed to other processes. */
export type BrokerPlace =
  | { readonly broker: 'JetStream'; readonly name: string; readonly address: NatsAddress }
  | { readonly broker: 'RabbitMQ'; readonly name: string; readonly url: string }
  | { readonly broker: 'Kafka'; readonly name: string; readonly address: string };

/** A message on its way to a broker. */
export interface Outgoing {
  /** The aggregate's id. */
  readonly key: string;
  readonly body: string;
}

/** Ends a consumer, with its connection. */
type Stop = () => Promise<void>;

/** Sends to a broker and consumes from it: with its library used plainly, and with Mailroom. */
export interface BrokerLink {
  /** Connects, to send with the library alone. */
  readonly sender: () => Promise<{
    /** Sends messages together. It resolves when the broker has stored each. */
    readonly send: (messages: readonly Outgoing[]) => Promise<unknown>;
    readonly close: Stop;
  }>;
  /** A bridge's target, as docs/queues.md shows it. */
  readonly target: () => { readonly to: BridgeTarget; readonly close: Stop };
  /** Consumes with the library alone: each message is acknowledged after the call. */
  readonly consume: (arrived: () => void) => Promise<Stop>;
  /** Consumes as docs/sources.md shows. */
  readonly loop: (inbox: InboxProcessor, handler: Handler) => Promise<Stop>;
}

/** The messages of RabbitMQ and of a partition of Kafka that one process runs side by side. */
export const CONCURRENCY = 10;

/** The name of the durable consumer, or of the group. */
export const CONSUMER = 'bench';

/** A measured loop keeps no dead letter. */
export async function noDeadLetter({ reason }: { readonly reason: object }): Promise<never> {
  throw new Error(`A message was rejected: ${JSON.stringify(reason)}`);
}
