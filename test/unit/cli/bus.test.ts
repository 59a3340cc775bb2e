import { describe, expect, test } from 'vitest';
import { auditText } from '../../../cli/reports/audit/audit-text.ts';
import { verdictOf } from '../../../cli/reports/why/chain-verdict.ts';
import { readTrace } from '../../../cli/reports/why/trace-reader.ts';
import { createAudit } from '../../../lambdas/runtime/operations/audit/audit.ts';
import { neighborsOf, withNeighbors } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import type { BusDirectory } from '../../../lambdas/runtime/operations/bus-directory.ts';
import { consumerEntryName, type Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { drained, fine } from './support/why-rig.ts';

const shipping: Directory = {
  mailroom: { ...directory.mailroom, stack: 'shipping-dev', table: 'Shipping' },
  consumers: [worker],
};
const closed = {
  get: () =>
    Promise.reject(Object.assign(new Error('No policy allows it'), { name: 'AccessDeniedException' })),
};

/** An event that the one consumer of its own Mailroom has processed. */
async function processed() {
  const mailroom = mailroomInMemory([fine]);
  const eventId = await drained(mailroom);
  const context = {
    now: mailroom.clock.now(),
    commandLine: (command: string) => command,
    awsLine: (command: string) => command,
    tableName: mailroom.table.name,
  };
  return { ...mailroom, eventId, context };
}

test('only Mailrooms on the same bus are neighbors', () => {
  const other = { ...shipping, mailroom: { ...shipping.mailroom, bus: 'another' } };
  expect(neighborsOf(directory, [directory, shipping, other])).toEqual([shipping]);
});

test('consumers of equal names are told apart by stack, and by table in one stack', () => {
  const second = { ...shipping, mailroom: { ...shipping.mailroom, table: 'Returns' } };
  const names = withNeighbors(directory, [shipping, second]).consumers.map(({ name }) => name);
  expect(names).toEqual(['worker', 'shipping-dev/worker', 'Returns/worker']);
});

describe('why does not say that every consumer has processed an event', () => {
  test('if the table of another Mailroom cannot be read', async () => {
    const { table, queues, eventId, context } = await processed();
    const neighbors = [withStored({ directory: shipping, table: { ...table, ...closed, name: 'Shipping' } })];
    const trace = await readTrace(withStored({ directory, table, queues, neighbors }), [eventId]);
    const { state, text } = verdictOf(trace, () => context);
    expect(state).toBe('unproven');
    expect(text).toContain(
      'processed by worker (2 min 30 s after its commit). That leaves out shipping-dev/worker',
    );
    expect(text).toContain('AccessDeniedException: No policy allows it');
  });

  test('if a consumer is claimed on the bus and its entry does not exist', async () => {
    const { table, queues, eventId, context } = await processed();
    const owner = { stack: 'shipping-dev', stackPath: 'Shipping', owner: 'Shipping/Parcels' };
    const claims: BusDirectory = {
      bus: 'bus',
      services: [],
      consumers: [
        { ...owner, table: 'Shipping', name: 'parcels' },
        { ...owner, table: directory.mailroom.table, name: worker.name },
      ],
    };
    const trace = await readTrace(withStored({ directory, table, queues, claims: async () => claims }), [
      eventId,
    ]);
    const { state, text } = verdictOf(trace, () => context);
    expect(state).toBe('unproven');
    expect(text).toContain(`shipping-dev/parcels, whose entry ${consumerEntryName('Shipping', 'parcels')}`);
  });
});

test('the audit does not ask a table again that has denied access', async () => {
  const mailroom = mailroomInMemory([fine]);
  for (let n = 0; n < 3; n += 1) await drained(mailroom);
  let asked = 0;
  const get = () => {
    asked += 1;
    return closed.get();
  };
  const { table, queues, clock } = mailroom;
  const neighbors = [{ directory: shipping, table: { get } }];
  const rules = { describe: async () => undefined };
  const audit = createAudit({ table, directory, neighbors, queues, clock, rules });
  // The three events are read at a time, so that each may ask before the first answer.
  await audit.run({ since: clock.now() - 3_600_000, until: clock.now() + 1, graceMs: 0 });
  expect(asked).toBeLessThanOrEqual(3);
});

test('the audit finds nothing missing at a consumer whose inbox it may not read, and says that it cannot tell', async () => {
  const { table, queues, clock, eventId } = await processed();
  const neighbors = [{ directory: shipping, table: closed }];
  const audit = createAudit({
    table,
    directory,
    neighbors,
    queues,
    clock,
    rules: { describe: async () => undefined },
  });
  const now = clock.now();
  const late = await audit.run({ since: now - 3_600_000, until: now + 1, graceMs: 0 });
  expect(eventId).not.toBe('');
  expect(late.missing).toEqual([]);
  expect(late.consumers).toMatchObject({
    worker: { expected: 1, processed: 1 },
    'shipping-dev/worker': { expected: 1, unproven: 1, missing: 0 },
  });
  expect(late.incomplete).toEqual([
    'Unproven at shipping-dev/worker: 1. Its inbox, in the table Shipping, or its queues could not be read (AccessDeniedException: No policy allows it).',
  ]);
  const recent = await audit.run({ since: now - 3_600_000, until: now + 1, graceMs: 3_600_000 });
  expect(recent.consumers['shipping-dev/worker']).toMatchObject({ waiting: 1, unproven: 0 });
  expect(recent.incomplete).toEqual([]);
});

describe('without --database, an inbox in PostgreSQL', () => {
  const moved = { ...worker, name: 'moved', inbox: 'postgres' } as const;
  const both: Directory = { ...directory, consumers: [worker, moved] };

  test('is not audited, and the report names its consumer', async () => {
    const { table, queues, clock } = await processed();
    const rules = { describe: async () => undefined };
    const range = { since: clock.now() - 3_600_000, until: clock.now() + 1, graceMs: 0 };
    const deps = { table, directory: both, queues, clock, rules };
    const report = await createAudit(deps).run(range);
    expect(report.missing).toEqual([]);
    expect(Object.keys(report.consumers)).toEqual(['worker']);
    const events = moved.events.map(({ source, type }) => ({ source, type }));
    expect(report.notAudited).toEqual([{ consumer: 'moved', events, because: 'postgres' }]);
    const recheck = { at: 0, command: '' };
    const text = auditText({ report }, { repair: '', apply: '', doctor: '', restore: [], recheck });
    expect(text).toContain('Not audited, because the inbox is in PostgreSQL, which --database reads:');
    const { notAudited, missing } = await createAudit({ ...deps, readsDatabase: 'postgres' }).run(range);
    expect(notAudited).toEqual([]);
    expect(missing).toMatchObject([{ consumer: 'moved' }]);
  });

  test('leaves the verdict of why open', async () => {
    const { table, queues, eventId, context } = await processed();
    const verdict = async (database?: { readonly engine: 'postgres' }) =>
      verdictOf(
        await readTrace(withStored({ directory: both, table, queues, database }), [eventId]),
        () => context,
      );
    expect(await verdict()).toMatchObject({
      state: 'unproven',
      text: expect.stringContaining('moved, whose inbox is in PostgreSQL (--database reads it)'),
    });
    expect((await verdict({ engine: 'postgres' })).state).not.toBe('unproven');
  });
});
