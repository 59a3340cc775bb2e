import type { SQSBatchResponse } from 'aws-lambda';
import { errorCode, errorMessage } from '../errors.ts';
import { type Handlers, handlerOf, readDelivered, readEvent } from './message.ts';

/**
 * What an operator's tools send to a consumer's function to learn which dead letters the code that is deployed **now** can
 * read: nothing is run, and no table is touched.
 */
export interface CheckRequest {
  readonly mailroomCheck: {
    /** Message bodies, as they stand in the queue. Lambda takes 6 MB in one call. */
    readonly bodies: readonly string[];
  };
}

/** Whether a message can be read by the deployed consumer. */
export type Check =
  | { readonly ok: true; readonly eventId: string; readonly type: string }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** The answer: one check for each body, in order. To whoever takes the function for an SQS handler it says that nothing failed. */
export interface CheckReport extends SQSBatchResponse {
  readonly checks: readonly Check[];
}

/** The bodies of a {@link CheckRequest}; `undefined` when the invocation is none. */
export function bodiesToCheck(event: unknown): readonly string[] | undefined {
  if (typeof event !== 'object' || event === null || 'Records' in event) return undefined;
  const bodies = (event as Partial<CheckRequest>).mailroomCheck?.bodies;
  return Array.isArray(bodies) ? bodies : undefined;
}

/** Reads messages as the consumer would, up to the point where their handlers are called. */
export async function checkMessages(
  handlers: Handlers,
  consumer: string,
  bodies: readonly string[],
): Promise<CheckReport> {
  const checks: Check[] = [];
  for (const body of bodies) checks.push(await checkMessage(handlers, consumer, body));
  return { batchItemFailures: [], checks };
}

async function checkMessage(handlers: Handlers, consumer: string, body: string): Promise<Check> {
  try {
    const delivered = readDelivered({ body });
    const { eventId, type } = delivered.envelope;
    await readEvent(handlerOf(handlers, consumer, delivered).definition, delivered.envelope);
    return { ok: true, eventId, type };
  } catch (error) {
    return { ok: false, code: errorCode(error), message: errorMessage(error) };
  }
}
