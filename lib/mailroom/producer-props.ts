import { Duration } from 'aws-cdk-lib';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { serviceNameProblems } from '../checks/names.ts';
import { publishesProblems } from './declared-events.ts';

/** Options of a producer that publishes at once. */
export interface PublishAtOnceOptions {
  /**
   * The length of the producer's turn, from the creation of an event: its transaction, PutEvents and the mark end in it, and `commit`
   * returns at its end at the latest. If any of them fails, the stream relay publishes 2 seconds after the turn. 100 ms to 5 seconds.
   *
   * @default 1 second
   */
  readonly timeout?: Duration;
}

/** Properties of a producer. */
export interface ProducerProps {
  /** The service's name: the `source` of its events. */
  readonly service: string;
  /**
   * The events that the function publishes, as definitions of the catalogue or `{ source, type }`, each owned by the service. The
   * outbox refuses any other (`NOT_DECLARED`).
   */
  readonly publishes: readonly EventRef[];
  /** Partition keys of the service's own rows, with `*` as a trailing wildcard, e.g. `ORDER#*`. @default none */
  readonly domainKeys?: readonly string[];
  /**
   * Lets the function publish its events right after their transaction; `{}` uses the defaults. Its code must opt in too:
   * `lambdaOutbox({ publishAtOnce: lambdaPublisher })`. docs/scaling.md says what it saves and costs.
   *
   * @default the relay publishes its events
   */
  readonly publishAtOnce?: PublishAtOnceOptions;
}

/** The length of the turn of a producer that publishes at once. */
export function turnOf({ timeout = Duration.seconds(1) }: PublishAtOnceOptions): Duration {
  return timeout;
}

/** Validates a producer. */
export function producerProblems({ service, publishes }: ProducerProps): string[] {
  const nothing =
    'publishes is empty. List the events that the function publishes, e.g. [OrderPlaced]. For a function that only ' +
    'writes rows of its service, call mailroom.table.grantDomain instead.';
  return [
    ...serviceNameProblems('service', service),
    ...(publishes.length === 0 ? [nothing] : publishesProblems(service, publishes)),
  ];
}
