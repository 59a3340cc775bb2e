import { test } from 'vitest';
import type { CaptureConnector } from '../../../cli/deployment/stored-rows.ts';
import { DAY_MS, HOUR_MS } from '../../../lambdas/runtime/base/units.ts';
import { withStored } from '../../support/with-stored.ts';
import { captured, countedBytes, review } from './support/captured-output.ts';
import { mailroomInMemory } from './support/mailroom-in-memory.ts';
import { commit } from './support/why-rig.ts';

/** An event that was left to change data capture three hours ago. */
async function capturedEvent(connectorsAt: (committedAt: number) => readonly CaptureConnector[]) {
  const made = mailroomInMemory([], { random: countedBytes() });
  const eventId = await commit(made);
  const committedAt = made.clock.now();
  const row = made.rows().find(({ SK }) => SK.endsWith(eventId));
  if (row === undefined) throw new Error('no row');
  const Item = { ...row, status: 'PUBLISHED', publishedAt: committedAt, publishedBy: 'cdc' };
  await made.table.write({ Put: { Item } });
  await made.clock.advance(3 * HOUR_MS);
  const { stored } = withStored(made);
  const connectors = async () => connectorsAt(committedAt);
  return { eventId, mailroom: { ...made, stored: { ...stored, connectors } } };
}

const CONNECTOR = {
  name: 'mailroom',
  retentionMs: 7 * DAY_MS,
  readUntil: undefined,
  beatAt: undefined,
};

test('the outputs about an event of change data capture are the reviewed ones', async () => {
  const isRead = await capturedEvent((at) => [{ ...CONNECTOR, readUntil: at + 3 * HOUR_MS - 12_000 }]);
  const beats = await capturedEvent((at) => [{ ...CONNECTOR, beatAt: at + 3 * HOUR_MS - 4_000 }]);
  const stopped = await capturedEvent((at) => [{ ...CONNECTOR, beatAt: at - HOUR_MS }]);
  const absent = await capturedEvent(() => []);
  const outputs = {
    'why-captured-story': [isRead, '--story'],
    'why-captured-in-mysql': [beats],
    'why-captured-stopped': [stopped],
    'why-captured-without-connector': [absent],
  } as const;
  for (const [name, [{ mailroom, eventId }, ...argv]] of Object.entries(outputs))
    await review(name, await captured(mailroom, ['why', eventId, ...argv]));
  const { mailroom } = isRead;
  await review(
    'events-list-captured',
    await captured(mailroom, ['events', 'list', '--published', '--since', '4h']),
  );
});
