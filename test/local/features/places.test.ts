import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { createOutbox, dynamoTable } from '../../../lambdas/runtime/index.ts';
import { inboxKey, limitKey } from '../../../lambdas/runtime/store/keys.ts';
import { producerConfig } from '../../../testing/index.ts';
import { dynamoClient } from '../../support/aws.ts';
import { eventually } from '../support/eventually.ts';
import { output, read } from '../support/features.ts';
import { mailroom } from '../support/mailroom.ts';
import { CallRequested } from './call-requested.ts';

/** The time of the function of `calls`, and 2 s, milliseconds. */
const PLACE_MS = 12_000;

const tableName = output('TableName');
const outbox = createOutbox({
  config: producerConfig({ service: CallRequested.source, tableName }),
  table: dynamoTable({ client: dynamoClient(inject('endpoint')), tableName }),
});

type First = 'calls' | 'exits' | 'hangs';

/** Commits calls of a provider. @returns the ids of their events */
async function requested(provider: string, ...calls: readonly First[]): Promise<string[]> {
  const events = calls.map((first) =>
    CallRequested.create({ aggregateId: randomUUID(), data: { provider, first } }),
  );
  const committed = await outbox.commit({ events });
  return committed.map(({ eventId }) => eventId);
}

const rowOf = (eventId: string) => read(inboxKey('calls', eventId));

/** The holders of a provider's places: the time by which the function of each has stopped, epoch milliseconds. */
async function placesOf(provider: string): Promise<number[]> {
  const { holders = [] } = (await read(limitKey({ name: 'provider' }, provider))) ?? {};
  return [...holders].map((holder) => Number.parseInt(holder, 10)).sort();
}

interface Call {
  readonly provider: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Waits for a call's end. @param moreMs - as of {@link eventually} */
const ended = (provider: string, eventId: string, moreMs = 0): Promise<Call> =>
  eventually(async () => {
    expect(await rowOf(eventId)).toMatchObject({ status: 'PROCESSED' });
    return { provider, ...(await read({ PK: `CALL#${eventId}`, SK: 'CALL' })) } as Call;
  }, moreMs);

/** The calls that go on when one starts, with it. */
const beside = (calls: readonly Call[], { startedAt }: Call) =>
  calls.filter((other) => other.startedAt <= startedAt && startedAt < other.endedAt);

test('at most two of twelve calls of two providers go on at once for each, and none counts an attempt for its wait', async () => {
  const providers = [randomUUID(), randomUUID()];
  const ids = await Promise.all(
    providers.map((provider) => requested(provider, ...Array<First>(6).fill('calls'))),
  );
  const calls = await Promise.all(
    providers.flatMap((provider, index) => (ids[index] ?? []).map((eventId) => ended(provider, eventId))),
  );
  expect(calls).toHaveLength(12);
  const most = providers.map((provider) => {
    const own = calls.filter((call) => call.provider === provider);
    return Math.max(...own.map((call) => beside(own, call).length));
  });
  expect(most).toEqual([2, 2]);
  expect(calls.map((call) => new Set(beside(calls, call).map(({ provider }) => provider)).size)).toContain(2);
  for (const eventId of ids.flat()) expect(await rowOf(eventId)).toMatchObject({ attempts: 1 });
  for (const provider of providers)
    await eventually(async () => expect(await placesOf(provider)).toEqual([]));
  expect((await mailroom('dlq', 'list', 'consumer:calls', '--json')).json()).toMatchObject({
    deadLetterSources: [{ count: 0 }],
  });
});

test('the place of a run that its process does not survive is free when its function would have been stopped', async () => {
  const provider = randomUUID();
  const [hangs = ''] = await requested(provider, 'hangs');
  await eventually(async () => expect(await placesOf(provider)).toHaveLength(1));
  const [exits = ''] = await requested(provider, 'exits');
  const [firstEnd = 0] = await eventually(async () => {
    const places = await placesOf(provider);
    expect(places).toHaveLength(2);
    return places;
  });
  expect(firstEnd - Date.now()).toBeLessThanOrEqual(PLACE_MS);
  const [waits = ''] = await requested(provider, 'calls');
  // The first two crashes of a message count no attempt.
  for (const eventId of [hangs, exits, waits])
    expect((await ended(provider, eventId, 6 * PLACE_MS)).startedAt).toBeGreaterThanOrEqual(firstEnd);
  for (const eventId of [hangs, exits]) expect(await rowOf(eventId)).toMatchObject({ attempts: 2 });
  expect(await rowOf(waits)).toMatchObject({ attempts: 1 });
});
