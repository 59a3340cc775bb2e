import { afterAll, inject } from 'vitest';
import { dynamoInbox } from '../../lambdas/runtime/consume/dynamo-inbox.ts';
import { createInbox } from '../../lambdas/runtime/store/dynamo/inbox-context.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { manualClock } from '../../testing/index.ts';
import { inboxContract } from '../postgres/inbox-contract.ts';
import { LEASE_MS, type TestedInbox } from '../postgres/inbox-rig.ts';
import { consumerConfig } from '../support/runtime-rig.ts';
import { type EngineTable, engineTable } from './engine-table.ts';

const made: EngineTable[] = [];

afterAll(() => Promise.all(made.map(({ remove }) => remove())));

inboxContract('DynamoDB', async (): Promise<TestedInbox> => {
  const { table, items } = await engineTable(inject('endpoint'), made);
  const clock = manualClock();
  const outbox = createOutbox({ config: consumerConfig, table, clock });
  const settings = { consumer: 'worker', leaseMs: LEASE_MS, random: systemRandomBytes, clock, table };
  const worker = (inboxRetentionDays = 35) =>
    dynamoInbox(createInbox({ ...settings, inboxRetentionDays }), outbox);
  return {
    inbox: worker(),
    clock,
    worker,
    pass: (ms) => clock.advance(ms),
    events: async () => (await items('OUTBOX#')).length,
  };
});
