import type { SQSBatchResponse } from 'aws-lambda';
import type { ProcessingConfig } from '../../base/consumer-config.ts';
import { errorCode, errorMessage, isMailroomError } from '../../base/errors.ts';

import type { ConsumerContext } from '../../consume/consumer-context.ts';
import { staleFrom } from '../../consume/expiry.ts';
import { inTimeOf, payloadsLate } from '../../consume/in-time.ts';
import { type Handlers, handlerOf, readDelivered, readEvent } from '../../consume/message.ts';
import { placeOf } from '../../consume/order-gate.ts';
import type { ExternalSubscription } from '../../events/external-event.ts';
import { withPayload } from '../../events/payloads.ts';
import { isEventId } from '../../store/event-id.ts';

import type { PlaceInOrder } from '../../store/inbox-row.ts';

/**
 * The request that operator tools send to a consumer's function to learn which dead letters the **currently** deployed code can
 * read. No handler runs, and the table is not touched.
 */
export interface CheckRequest {
  readonly mailroomCheck: {
    /** Message bodies, exactly as in the queue. A Lambda invocation accepts 6 MB. */
    readonly bodies: readonly string[];
  };
}

/** The result for one message: whether the deployed consumer can read it. */
export type Check = JudgedUnread &
  (
    | {
        readonly ok: true;
        readonly eventId: string;
        readonly type: string;
        /** Its handler has a `rejected` function. @default false */
        readonly rejects?: boolean;
      }
    | { readonly ok: false; readonly code: string; readonly message: string }
  );

/** The place and the age of a message that its consumer would judge before it reads the payload. */
interface JudgedUnread {
  /** Absent if its handler has no order, or its event no usable number. */
  readonly order?: PlaceInOrder;
  /** When it is stale, epoch milliseconds. Absent if its handler takes it however old. */
  readonly staleFrom?: number;
}

/** The response: one check per body, in order. To a caller that treats the function as an SQS handler, it reports no failures. */
export interface CheckReport extends SQSBatchResponse {
  readonly checks: readonly Check[];
}

/** Returns the bodies of a {@link CheckRequest}; `undefined` if the invocation is not one. */
export function bodiesToCheck(event: unknown): readonly string[] | undefined {
  if (typeof event !== 'object' || event === null) return undefined;
  const bodies = (event as Partial<CheckRequest>).mailroomCheck?.bodies;
  return Array.isArray(bodies) ? bodies : undefined;
}

/** The parts of a consumer that its messages are read with. */
type CheckedBy = Pick<ConsumerContext, 'payloads' | 'clock'> & { readonly config: ProcessingConfig };

/** The number of messages whose payloads are read at the same time: each can have 32 MiB. */
const READ_AT_ONCE = 8;

/**
 * Reads messages as the consumer would, without calling their handlers.
 *
 * @param endsBy - when the function is stopped, epoch milliseconds
 * @throws `PAYLOADS_UNAVAILABLE`: nothing is judged, because the messages are not at fault
 */
export async function checkMessages(
  handlers: Handlers,
  external: readonly ExternalSubscription[],
  checkedBy: CheckedBy,
  bodies: readonly string[],
  endsBy: number,
): Promise<CheckReport> {
  const checks: Check[] = [];
  const check = (body: string) => checkMessage(handlers, external, checkedBy, body, endsBy);
  for (let i = 0; i < bodies.length; i += READ_AT_ONCE)
    checks.push(...(await Promise.all(bodies.slice(i, i + READ_AT_ONCE).map(check))));
  return { batchItemFailures: [], checks };
}

async function checkMessage(
  handlers: Handlers,
  subscriptions: readonly ExternalSubscription[],
  { config, payloads, clock }: CheckedBy,
  body: string,
  endsBy: number,
): Promise<Check> {
  const inTime = (read: Promise<unknown>) => inTimeOf(clock, endsBy)(read, payloadsLate);
  let place: JudgedUnread = {};
  try {
    const delivered = readDelivered(body, { subscriptions, arrivedAt: 0 });
    const { eventId, type } = delivered.envelope;
    const handler = handlerOf(handlers, config.consumer, delivered);
    const order = placeOf({ config }, handler, delivered.envelope);
    const stale = isEventId(eventId) ? staleFrom(handler, { eventId }) : undefined;
    place = { ...(order !== undefined && { order }), ...(stale !== undefined && { staleFrom: stale }) };
    await readEvent(handler.definition, await withPayload(payloads, delivered.envelope, inTime));
    return {
      ok: true,
      eventId,
      type,
      ...(handler.rejected !== undefined && { rejects: true }),
      ...place,
    };
  } catch (error) {
    if (isMailroomError(error, 'PAYLOADS_UNAVAILABLE')) throw error;
    return { ok: false, code: errorCode(error), message: errorMessage(error), ...place };
  }
}
