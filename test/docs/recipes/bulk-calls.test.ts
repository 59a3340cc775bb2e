import { expect, test } from 'vitest';
import type { Envelope, EventDraft, Handler } from '../../../lambdas/runtime/index.ts';
import { explore, type MemoryTable } from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';

interface Mail {
  readonly id: string;
  readonly to: string;
}

interface Definition {
  create(given: { readonly aggregateId: string; readonly data: unknown }): EventDraft;
}

const { OrderPlaced, MailsCollected, collectMails, sendMails } = await codeOf<{
  OrderPlaced: Definition;
  MailsCollected: Definition;
  collectMails: Handler;
  sendMails(send: (mails: readonly Mail[], key: string) => Promise<string[]>): Handler;
}>('docs/recipes/bulk-calls.md', 'src/mails.ts');

const placed = (id: string) =>
  OrderPlaced.create({ aggregateId: id, data: { email: `${id}@orders.example` } });
const mailOf = (id: string): Mail => ({ id, to: `${id}@orders.example` });

function published(table: MemoryTable, type: string): unknown[] {
  return table
    .items()
    .filter((row) => row.type === type && row.envelope !== undefined)
    .map((row) => (JSON.parse(String(row.envelope)) as Envelope).data);
}

test('each order is in one set of mails, whatever crashes', async () => {
  const sizes = new Set<number>();
  const { crashPoints } = await explore(collectMails, {
    event: placed('order-1'),
    others: [placed('order-2'), placed('order-3')],
    check: (table) => {
      const sets = published(table, 'MailsCollected') as { readonly mails: readonly Mail[] }[];
      for (const { mails } of sets) sizes.add(mails.length);
      const ids = sets.flatMap(({ mails }) => mails.map(({ id }) => id));
      expect(ids.toSorted()).toEqual(['order-1', 'order-2', 'order-3']);
    },
  });
  expect(crashPoints).toBeGreaterThan(0);
  expect([...sizes]).toEqual(expect.arrayContaining([1, 3])); // after a crash, each alone
}, 600_000);

/** A provider that keeps one answer for a key, and refuses one mail. */
class Provider {
  readonly calls = new Map<string, readonly Mail[]>();
  mixedUp = 0;

  send(mails: readonly Mail[], key: string): string[] {
    const before = this.calls.get(key);
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(mails)) this.mixedUp += 1;
    this.calls.set(key, before ?? mails);
    return ['order-2'];
  }
}

test('the provider gets one set under one key, whatever crashes, and a mail that it refuses fails alone', async () => {
  const mails = ['order-1', 'order-2', 'order-3'].map(mailOf);
  const { crashPoints } = await explore(
    (_parts, provider: Provider) => sendMails(async (set, key) => provider.send(set, key)),
    {
      event: MailsCollected.create({ aggregateId: 'set-1', data: { mails } }),
      world: () => new Provider(),
      check: (table, { calls, mixedUp }) => {
        expect([...calls.values()]).toEqual([mails]);
        expect(mixedUp).toBe(0);
        expect(published(table, 'MailRefused')).toEqual([mailOf('order-2')]);
      },
    },
  );
  expect(crashPoints).toBeGreaterThan(0);
}, 600_000);
