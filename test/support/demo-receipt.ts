import type { DemoReceipt } from '../../cli/page/server/protocol.ts';

/** The result of a run of the demo that lost and duplicated nothing. */
export const RECEIPT: DemoReceipt = {
  headline: 'Nothing lost, nothing duplicated',
  problems: [],
  ...{ orders: 30, confirmed: 26, cancelled: 4, expired: 1, scheduled: 30, timersCancelled: 29 },
  eventsPublished: 96,
  processed: { payments: 34, inventory: 33, notifications: 32, 'order-status': 62 },
  ...{ rejected: 1, superseded: 1, duplicatesSent: 21, duplicatesAbsorbed: 21 },
  ...{ charges: 28, refunds: 3, doubleCharges: 0, missingCharges: 0, emails: 32 },
  commitToPublishedMs: { p50: 124, p90: 410, p99: 1_337 },
  commitToProcessedMs: { p50: 520, p90: 1_450, p99: 2_790 },
  commitToChargedMs: { p50: 731, p90: 1_610, p99: 2_954 },
  perSecond: { placed: [9, 11, 10, 0], published: [20, 36, 38, 2], processed: [0, 70, 52, 39] },
};
