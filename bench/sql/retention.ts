import type { FigureTable, PartSettings } from '../part.ts';
import type { BenchDatabase, BenchServer } from './database.ts';
import { megabytes, slowBus } from './events.ts';

/** Published events that were deleted. */
interface DeletedEvents {
  readonly published: number;
  readonly deletedPerSecond: number;
  readonly rounds: number;
  readonly mbBefore: number;
}

/** Deletes published events by the relay's own rounds. */
export async function retain(
  database: BenchDatabase,
  published: number,
  { say }: PartSettings,
): Promise<DeletedEvents> {
  await database.writePublished(published);
  const bytes = await database.bytesOf('event', 'published');
  const relay = database.relayOf(slowBus(0));
  const beganAt = performance.now();
  let rounds = 0;
  for (let left = published; left > 0; rounds += 1) {
    // A round of care, and no pass.
    await relay.run(Date.now() + 1);
    left = await database.countPublished();
    say(`${left} of ${published} published events are left`);
  }
  const seconds = (performance.now() - beganAt) / 1_000;
  await database.close();
  return {
    published,
    deletedPerSecond: Math.round(published / seconds),
    rounds,
    mbBefore: megabytes(bytes),
  };
}

/** The measurement as a table. */
export function retentionTable(
  { name, title }: BenchServer,
  { published, deletedPerSecond, rounds, mbBefore }: DeletedEvents,
): FigureTable {
  return {
    name: `${name}-retention`,
    title: `Deleting published events of 1 KB from ${title}, in batches of 1,000`,
    head: ['published events', 'MB before', 'rounds of at most 5 s', 'deleted per second'],
    rows: [[published, mbBefore, rounds, deletedPerSecond]],
  };
}
