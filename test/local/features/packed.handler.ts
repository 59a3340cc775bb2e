import { isMailroomError, lambdaOutbox } from '../../../lambdas/runtime/index.ts';
import { Packed, PackingRequested } from './packing.ts';

const outbox = lambdaOutbox();

type Step =
  | { readonly request: { readonly parcel: string; readonly crash: boolean } }
  | {
      readonly parcel: string;
      readonly eventId: string;
      readonly correlationId: string;
      readonly outcome: string;
    };

/** Requests an execution, or commits its result, which Step Functions tries again. @returns the id of the request */
export async function handler(step: Step): Promise<string | undefined> {
  if ('request' in step) {
    const data = step.request;
    const [event] = await outbox.commit({
      events: [PackingRequested.create({ aggregateId: data.parcel, data })],
    });
    return event?.eventId;
  }
  const { parcel, eventId, correlationId, outcome } = step;
  const Item = { PK: `PACKING#${parcel}`, SK: `RESULT#${eventId}`, outcome };
  try {
    await outbox.commit({
      writes: [{ Put: { Item, ConditionExpression: 'attribute_not_exists(PK)' } }],
      events: [
        Packed.create({ aggregateId: parcel, data: { outcome }, correlationId, causationId: eventId }),
      ],
    });
  } catch (error) {
    const isRetry =
      isMailroomError(error, 'TRANSACTION_CANCELLED') && error.reasons[0]?.code === 'ConditionalCheckFailed';
    if (!isRetry) throw error;
    return undefined;
  }
  // The answer of the first try is lost.
  throw new Error('The function failed after its commit');
}
