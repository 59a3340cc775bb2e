import { createHash } from 'node:crypto';
import { latest, strict } from '../../lambdas/runtime/index.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { chunks } from '../alternatives/queue-delivery.ts';
import type { System } from '../alternatives/system.ts';
import { isRetried, jumpingClock, orderId } from '../alternatives/workload.ts';
import { createMeteredAws } from '../aws/metered-aws.ts';
import { createFlow, type MailroomVariant } from './mailroom-flow.ts';
import { sweepMinute, TABLE } from './sweep-minute.ts';

/** Mailroom as deployed, by handler: the real outbox, stream handler and consumer, with the SDK clients that they use in AWS. */
export const MAILROOM: Readonly<Record<'transactional' | 'leased' | 'leased, once', System>> = {
  transactional: mailroom('mailroom (transactional)', { handler: 'transactional' }),
  leased: mailroom('mailroom (leased)', { handler: 'leased' }),
  'leased, once': mailroom('mailroom (leased, ctx.once)', { handler: 'leased, once' }),
};

/** Leased handlers, and payloads that hardly compress: random text. */
export const UNCOMPRESSED = mailroom('mailroom (leased, random text)', {
  handler: 'leased',
  payloadOf: randomText,
});

/** Transactional handlers, and a producer that publishes at once. */
export const AT_ONCE = mailroom('mailroom (transactional, at once)', {
  handler: 'transactional',
  publisher: 'producer',
});

/** As {@link AT_ONCE}, with a relay that publishes every event again. */
export const AT_ONCE_AGAIN = mailroom('mailroom (transactional, published again)', {
  handler: 'transactional',
  publisher: 'both',
});

/** Batch handlers: a row for each event, or one for the batch. */
export const BATCHED: readonly System[] = [
  mailroom('mailroom (batch)', { handler: 'batch' }),
  mailroom('mailroom (batch, one row)', { handler: 'batch, one row' }),
];

/** Batch handlers, ordered and limited consumers, unique and scheduled events for an ordinary one, and bridges. */
export const ORDER_AND_TIME: readonly System[] = [
  ...BATCHED,
  mailroom('mailroom (transactional, strict)', { handler: 'transactional', order: strict() }),
  mailroom('mailroom (transactional, latest)', { handler: 'transactional', order: latest() }),
  mailroom('mailroom (leased, strict)', { handler: 'leased', order: strict() }),
  mailroom('mailroom (leased, limit)', { handler: 'leased', limit: 'own key' }),
  mailroom('mailroom (leased, concurrency)', { handler: 'leased', limit: 'own place' }),
  mailroom('mailroom (transactional, uniqueBy)', { handler: 'transactional', isUnique: true }),
  mailroom('mailroom (transactional, scheduled)', { handler: 'transactional', schedule: 'due' }),
  mailroom('mailroom (scheduled, cancelled)', { handler: 'transactional', schedule: 'cancelled' }),
  mailroom('mailroom (scheduled, cancelled in a transaction)', {
    handler: 'transactional',
    schedule: 'cancelled in a transaction',
  }),
  mailroom('mailroom (bridge to SQS)', { handler: 'bridge' }),
  mailroom('mailroom (bridge to SQS FIFO, strict)', { handler: 'bridge', order: strict() }),
];

/** Payloads above the threshold of a claim check: in the row, as realistic orders and as random text, and in S3. */
export const LARGE_PAYLOADS: readonly System[] = [
  MAILROOM.transactional,
  mailroom('mailroom (transactional, random text)', { handler: 'transactional', payloadOf: randomText }),
  mailroom('mailroom (transactional, payload in S3)', { handler: 'transactional', payloadsInS3: true }),
];

/** Leased handlers with a limit, of which all but the first event of a batch wait once. */
export const LIMIT_REACHED = mailroom('mailroom (leased, limit, waits once)', {
  handler: 'leased',
  limit: 'one key',
});

function mailroom(name: string, variant: MailroomVariant): System {
  const publishes = variant.schedule === undefined ? 'at least once' : 'at least once unless cancelled';
  return {
    name,
    promise: { publishes, effects: 'exactly once' },
    tables: [{ name: TABLE, keys: ['PK', 'SK'] }],
    standing: sweepStanding,
    run: async (aws, workload) => {
      const flow = createFlow(aws, workload, variant);
      const indexes = Array.from({ length: workload.events }, (_, index) => index);
      for (const batch of chunks(indexes, workload.batchSize)) {
        const eventIds = await aws.during('write', () => flow.write(batch));
        aws.failNextEntries(batch.filter((index) => isRetried(workload, index)).length);
        await aws.during('relay', () => flow.relay());
        if (variant.schedule === 'due') await aws.during('standing', () => flow.sweepDue(eventIds));
        else if (variant.schedule !== undefined) await aws.during('cancel', () => flow.cancel(eventIds));
        await aws.during('consume', () => flow.consume());
      }
    },
  };
}

/** The sweep does not depend on the handlers. */
async function sweepStanding(...[aws, load]: Parameters<NonNullable<System['standing']>>): Promise<number> {
  await sweepMinute(aws, await publishedRow(load.payloadBytes), load.eventsPerSecond);
  return 1;
}

/** A published outbox row. */
export async function publishedRow(payloadBytes: number): Promise<Item> {
  const aws = createMeteredAws(MAILROOM.transactional.tables, { clock: jumpingClock() });
  const workload = { events: 1, payloadBytes, consumers: 0, retries: 0, batchSize: 1 };
  await MAILROOM.transactional.run(aws, workload);
  const row = aws.items(TABLE).find(({ status }) => status === 'PUBLISHED');
  if (row) return row;
  throw new Error('The event was not published');
}

/** A payload of random characters, the same in every run: it compresses to four fifths at best. */
function randomText(index: number, bytes: number) {
  const empty = { orderId: orderId(index), note: '' };
  const count = bytes - JSON.stringify(empty).length;
  const random = createHash('shake256', { outputLength: count }).update(empty.orderId).digest();
  // From ] to ~, and from # to [: the 91 characters of ASCII that JSON does not escape.
  const codes = random.map((byte) => 35 + (byte % 91) + (byte % 91 < 57 ? 0 : 1));
  return { ...empty, note: Buffer.from(codes).toString('latin1') };
}
