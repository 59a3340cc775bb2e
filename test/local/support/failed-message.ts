import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import { failedKey, inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { put } from './order-system.ts';
import { type UnpublishedOrder, unpublishedOrder } from './unpublished-order.ts';

/**
 * An order that payments has failed to charge, and will try again in a day: the rows that a consumer writes then, without
 * its message. A failure of the deployed consumer lasts for seconds, and a test on a busy machine may miss them.
 */
export async function failedMessage(attempts: number): Promise<UnpublishedOrder> {
  const paper = await unpublishedOrder();
  const { eventId, type } = paper.envelope;
  const now = Date.now();
  await put({ ...paper.row, status: 'PUBLISHED', publishedAt: now, publishedBy: 'stream' });
  await put({
    ...inboxKey('payments', eventId),
    schema: SCHEMA,
    status: 'FAILED',
    fence: 'of-a-claim-that-failed',
    attempts,
    claimedAt: now,
    type,
    lastError: 'The bank answered 500: it fails on purpose',
    fingerprint: 'payments BankError: The bank answered #: it fails on purpose',
    retryAt: now + DAY_MS,
  });
  await put({
    ...inboxKey('inventory', eventId),
    schema: SCHEMA,
    status: 'PROCESSED',
    fence: 'of-a-claim-that-succeeded',
    attempts: 1,
    processedAt: now,
    type,
  });
  const hint = { schema: SCHEMA, failedAt: now, expiresAt: Math.ceil((now + 2 * DAY_MS) / 1_000) };
  await put({ ...failedKey('payments', eventId), ...hint });
  return paper;
}
