import { randomBytes } from 'node:crypto';
import { lambdaOutbox } from '../../../lambdas/runtime/index.ts';
import { Booked } from './booked.ts';

const outbox = lambdaOutbox();

/**
 * Books numbers 1, 2, 3 … on an account.
 *
 * @param bytes - the size of each note, which cannot be compressed
 * @returns the ids of the events
 */
export async function handler({ account, count = 1, bytes = 8 }: Booking): Promise<readonly string[]> {
  const events = Array.from({ length: count }, (_, i) =>
    Booked.create({
      aggregateId: account,
      sequence: i + 1,
      data: { note: randomBytes(Math.ceil((bytes * 3) / 4)).toString('base64') },
    }),
  );
  return (await outbox.commit({ events })).map(({ eventId }) => eventId);
}

interface Booking {
  readonly account: string;
  readonly count?: number;
  readonly bytes?: number;
}
