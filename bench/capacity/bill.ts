import { SQS_REQUEST_BYTES } from '../alternatives/queue-delivery.ts';
import { GB_BYTES, LAMBDA_MB, LOG_BYTES_PER_INVOCATION, MINUTES_PER_MONTH, PRICES } from '../assumptions.ts';
import { outboxUnits, spreadUnits } from './demand.ts';
import { type MailroomPlan, storedGb } from './load.ts';

/** US dollars per month of 30 days. */
export interface CapacityBill {
  readonly writes: number;
  readonly reads: number;
  readonly storage: number;
  readonly bus: number;
  readonly queues: number;
  /** Including logs. */
  readonly functions: number;
  readonly total: number;
  /** The total per million events. */
  readonly perMillionEvents: number;
}

const SECONDS_PER_MONTH = MINUTES_PER_MONTH * 60;

/**
 * The monthly cost of a number of Mailrooms, without the producers' functions, permanent domain rows, alarms, and the charge for
 * raising warm throughput.
 */
export function monthlyBill(mailroom: MailroomPlan, mailrooms: number): CapacityBill {
  const { demand, eventsPerSecond, stream, sweep, consumer } = mailroom;
  const millions = (eventsPerSecond * mailrooms * SECONDS_PER_MONTH) / 1e6;
  const stored = storedGb(eventsPerSecond * mailrooms, demand);
  const gb = LAMBDA_MB / 1_024;
  const functionsPerSecond =
    functionUsd(stream.invocationsPerSecond, stream.concurrency * gb) +
    demand.consumers * functionUsd(consumer.invocationsPerSecond, consumer.concurrency * gb) +
    functionUsd(1 / 60, (sweep.seconds / 60) * gb);
  const parts = {
    writes: millions * (outboxUnits(demand) + spreadUnits(demand)) * PRICES.writeUnitsPerMillion,
    reads: (mailrooms * sweep.readUnits * MINUTES_PER_MONTH * PRICES.readUnitsPerMillion) / 1e6,
    storage: stored * (PRICES.storagePerGbMonth + PRICES.recoveryPerGbMonth),
    bus: millions * PRICES.busEventsPerMillion,
    queues: millions * demand.consumers * queueRequests(mailroom) * PRICES.queueRequestsPerMillion,
    functions: mailrooms * functionsPerSecond * SECONDS_PER_MONTH,
  };
  const total = Object.values(parts).reduce((sum, usd) => sum + usd, 0);
  return { ...parts, total, perMillionEvents: total / millions };
}

/** Requests per message: it is sent and received in a batch, per started 64 KB, and deleted. */
function queueRequests({ demand, consumer }: MailroomPlan): number {
  const { messagesPerInvocation } = consumer;
  const received = Math.ceil((messagesPerInvocation * demand.rowBytes) / SQS_REQUEST_BYTES);
  return 1 + (received + 1) / messagesPerInvocation;
}

/** The cost of one second of a function. */
function functionUsd(invocations: number, gbSeconds: number): number {
  return (
    (invocations * PRICES.invocationsPerMillion) / 1e6 +
    gbSeconds * PRICES.lambdaGbSecond +
    (invocations * LOG_BYTES_PER_INVOCATION * PRICES.logsPerGb) / GB_BYTES
  );
}
