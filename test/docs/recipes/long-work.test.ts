import { expect, test, vi } from 'vitest';
import { createOutbox, type defineEvent, type Handler, type Outbox } from '../../../lambdas/runtime/index.ts';
import { explore, memoryTable, producerConfig } from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';

/** Part of the client of Step Functions that the page uses. */
interface Starts {
  startExecution(request: { name: string; input: string }): Promise<{ executionArn: string }>;
}

const page = 'docs/recipes/long-work.md';
const { startPacking } = await codeOf<{ startPacking(client: Starts, arn: string): Handler }>(
  page,
  'src/start-packing.ts',
);
const { OrderPlaced } = await codeOf<{ OrderPlaced: ReturnType<typeof defineEvent> }>(page, 'src/events.ts');
const { commitPacked } = await codeOf<{ commitPacked(outbox: Outbox): (packed: object) => Promise<void> }>(
  page,
  'src/packed.ts',
);

const HEAD = 'arn:aws:states:eu-central-1:123456789012';

/** Step Functions, whose executions end at once: a name that is used again is refused. */
function stateMachine(executions: Map<string, string>): Starts {
  return {
    startExecution: async ({ name, input }) => {
      if (executions.has(name))
        throw Object.assign(new Error('It exists.'), { name: 'ExecutionAlreadyExists' });
      executions.set(name, input);
      return { executionArn: `${HEAD}:execution:packing:${name}` };
    },
  };
}

test('one execution of an order is started, whatever crashes', async () => {
  const report = await explore(
    (_, executions) => startPacking(stateMachine(executions), `${HEAD}:stateMachine:packing`),
    {
      event: OrderPlaced.create({ aggregateId: '42', data: { orderId: '42', totalCents: 1 } }),
      world: () => new Map<string, string>(),
      check: (_, executions) => expect(executions.size).toBe(1),
    },
  );
  expect(report.schedules).toBeGreaterThan(50);
});

test('the last step commits its result and its event once, however often it is tried', async () => {
  const table = memoryTable();
  const commit = commitPacked(createOutbox({ config: producerConfig(), table }));
  const packed = { orderId: '42', eventId: 'event-1', correlationId: 'chain-1', outcome: 'packed' };
  await Promise.all([commit(packed), commit(packed)]);
  await commit(packed);
  const events = table.items().filter(({ SK }) => String(SK).startsWith('EVENT#'));
  expect(events).toHaveLength(1);
  expect(JSON.stringify(events)).toContain('chain-1');
  expect(table.item({ PK: 'PACKING#42', SK: 'RESULT#event-1' })).toMatchObject({ outcome: 'packed' });
});

test('the last step fails if the table does', async () => {
  const table = memoryTable();
  const broken = { ...table, transact: vi.fn(() => Promise.reject(new Error('socket hang up'))) };
  const commit = commitPacked(createOutbox({ config: producerConfig(), table: broken }));
  const packed = { orderId: '42', eventId: 'event-1', correlationId: 'chain-1', outcome: 'packed' };
  await expect(commit(packed)).rejects.toThrow('socket hang up');
});
