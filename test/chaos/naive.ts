import { randomUUID } from 'node:crypto';
import { PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { required } from '../../demo/readings.ts';
import { createNaiveConsumers, type NaiveConsumers } from './naive-consumers.ts';
import type { OrderSystem } from './order-system.ts';

/**
 * Designs that look right and are not, run for comparison: on the same engine, through the same fault proxy (as
 * `naive`), against the same bank. What they come to is read from the table, the bus and the bank's ledger.
 */
export interface Naive extends NaiveConsumers {
  /** A service that stores orders, and publishes the event of each right after it. */
  writeThenPublish(orders: number): Promise<Delivery>;
  /** A relay that marks its rows first and publishes them then. */
  markThenPublish(events: number): Promise<Delivery>;
  /** A relay that publishes its rows in one call, and marks all of them when that call has succeeded. */
  publishThenMarkAll(texts: readonly string[]): Promise<Delivery>;
}

/** What became of the events of a naive design. */
interface Delivery {
  /** Rows that say that their event is done with. */
  readonly done: number;
  /** Those of them whose event never reached the bus. Nothing will look at them again. */
  readonly lost: number;
}

/** Makes the naive designs of one scenario. */
export function createNaive(deps: { readonly system: OrderSystem; readonly runId: string }): Naive {
  const { system, runId } = deps;
  const { store, mark, publish, delivery } = naiveTable(system);
  return {
    ...createNaiveConsumers(deps),

    writeThenPublish: async (orders) => {
      const pk = `NAIVE#${runId}#write-then-publish`;
      for (const id of minted(orders)) {
        await store(pk, id, 'DONE');
        await publish([id]).catch(() => {}); // logged, says this design: the order is stored all the same
      }
      return delivery(pk);
    },

    markThenPublish: async (events) => {
      const pk = `NAIVE#${runId}#mark-then-publish`;
      for (const id of minted(events)) {
        await store(pk, id, 'PENDING');
        await mark(pk, id);
        await publish([id]).catch(() => {}); // nothing follows it, so being cut off here is what dying here is
      }
      return delivery(pk);
    },

    publishThenMarkAll: async (texts) => {
      const pk = `NAIVE#${runId}#publish-then-mark-all`;
      const ids = minted(texts.length);
      for (const id of ids) await store(pk, id, 'PENDING');
      await publish(ids, texts);
      for (const id of ids) await mark(pk, id);
      return delivery(pk);
    },
  };
}

/** The rows and the publishing that the naive designs share. */
function naiveTable({ documents, tableName: TableName, outputs, naiveEvents, journal, rows }: OrderSystem) {
  return {
    store: async (PK: string, SK: string, status: string): Promise<void> => {
      await documents.send(new PutCommand({ TableName, Item: { PK, SK, status } }));
    },
    mark: async (PK: string, SK: string): Promise<void> => {
      await documents.send(
        new UpdateCommand({
          TableName,
          Key: { PK, SK },
          UpdateExpression: 'SET #status = :done',
          ExpressionAttributeNames: { '#status': 'status' },
          ExpressionAttributeValues: { ':done': 'DONE' },
        }),
      );
    },
    publish: async (ids: readonly string[], texts: readonly string[] = []): Promise<void> => {
      const Entries = ids.map((eventId, i) => ({
        EventBusName: required(outputs, 'EventBusName'),
        Source: 'naive',
        DetailType: 'Naive',
        Detail: JSON.stringify({ eventId, text: texts[i] }),
      }));
      await naiveEvents.send(new PutEventsCommand({ Entries }));
    },
    delivery: async (pk: string): Promise<Delivery> => {
      const done = (await rows(pk)).filter((row) => row.status === 'DONE').map((row) => String(row.SK));
      return { done: done.length, lost: done.filter((id) => journal.timesPublished(id) === 0).length };
    },
  };
}

function minted(count: number): string[] {
  return Array.from({ length: count }, () => randomUUID());
}
