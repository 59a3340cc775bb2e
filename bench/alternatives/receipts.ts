import type { Clock } from '../../lambdas/runtime/clock.ts';
import { mintToken, type RandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { asRow, expiresAt, OUTBOX_PREFIX, SCHEMA } from '../../lambdas/runtime/store/rows.ts';
import type {
  EachResult,
  EachUpdate,
  Item,
  Key,
  Page,
  Table,
  TransactAction,
} from '../../lambdas/runtime/store/table.ts';

/**
 * Marks gathered: `RECEIPT#<minute>` / a random token. An event of that minute whose id is in a receipt was published,
 * although its own row says PENDING for ever.
 */
export interface Receipt extends Key {
  readonly schema: number;
  /** As texts that can be read: 25, the most that come in one call, fit into 1 KB, which is one write unit. */
  readonly eventIds: ReadonlySet<string>;
  readonly publishedAt: number;
  readonly expiresAt: number;
}

/** How receipts are kept. */
export interface ReceiptOptions {
  readonly clock: Clock;
  readonly random: RandomBytes;
  /**
   * After how many days from its birth TTL may delete a row. It is born with that, because nobody writes it again. 0: without,
   * and no published row is ever deleted. @default 35
   */
  readonly bornDays?: number | undefined;
  /** Whether who claims a row looks for its receipt first. @default true */
  readonly looksFirst?: boolean | undefined;
}

/** A receipt outlives its rows, by more than TTL is late: a row without it would be published again. */
const RECEIPT_MORE_DAYS = 30;

/** For how long readers of rows share what was read of a minute's receipts, milliseconds: its shards are read together. */
const SHARED_MS = 10_000;

/**
 * The table port with receipts instead of marks; outbox, relay, sweep and operations run on it unchanged.
 *
 * - **Mark.** Rows that this process has published under their born lease get one receipt together. A row that was claimed has
 *   cost a write of its own anyway, and is marked as ever.
 * - **Read.** A row that is PENDING and was never claimed is shown PUBLISHED when it has a receipt.
 * - **Claim.** The condition on the row cannot know of a receipt, so whoever claims looks for one first.
 * - **Expiry.** A row is born with `expiresAt`; every other change of it takes that away until it is marked. TTL then deletes
 *   nothing that somebody has seen unpublished. It does delete what nobody has looked at for that long.
 */
export function receiptTable(table: Table, options: ReceiptOptions): Table {
  const { clock, random, bornDays = 35, looksFirst = true } = options;
  const claimed = new Set<string>(); // sort keys of rows that this process has changed, and not marked yet
  const shared = new Map<string, { readonly at: number; readonly receipts: Promise<Published> }>();

  /** Every event of a minute that has a receipt, and when it was published. */
  async function readReceipts(minute: string): Promise<Published> {
    const published = new Map<string, number>();
    let cursor: Item | undefined;
    do {
      const page: Page = await table.query({ pk: `RECEIPT#${minute}`, consistent: true, cursor });
      for (const item of page.items) {
        const { eventIds, publishedAt } = asRow<Receipt>(item);
        for (const eventId of eventIds) published.set(`EVENT#${eventId}`, publishedAt);
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
    return published;
  }

  function sharedReceipts(minute: string): Promise<Published> {
    for (const [known, { at }] of shared) if (at + SHARED_MS <= clock.now()) shared.delete(known);
    const found = shared.get(minute) ?? { at: clock.now(), receipts: readReceipts(minute) };
    shared.set(minute, found);
    found.receipts.catch(() => shared.delete(minute));
    return found.receipts;
  }

  async function writeReceipts(marks: readonly EachUpdate[]): Promise<void> {
    for (const [minute, ofMinute] of byMinute(marks)) {
      const eventIds = ofMinute.map(({ key }) => key.SK.slice('EVENT#'.length));
      const receipt = createReceipt(minute, mintToken(random), eventIds, clock.now(), bornDays);
      await table.write({ Put: { Item: { ...receipt } } });
    }
  }

  /** Marks what has a receipt: a row that was changed meanwhile says PENDING, and no reader trusts a receipt of it. */
  async function settled(claims: readonly EachUpdate[]): Promise<EachUpdate[]> {
    const found: EachUpdate[] = [];
    for (const [minute, ofMinute] of byMinute(looksFirst ? claims : [])) {
      const published = await readReceipts(minute);
      found.push(...ofMinute.filter(({ key }) => published.has(key.SK)));
    }
    const now = clock.now();
    const set = { status: 'PUBLISHED', publishedAt: now, expiresAt: expiresAt(now, bornDays) };
    if (found.length > 0)
      await table.updateEach(found.map(({ key }) => ({ key, set, when: { status: 'PENDING' } })));
    return found;
  }

  async function updateEach(updates: readonly EachUpdate[]): Promise<EachResult[]> {
    const fresh = updates.filter(({ key }) => isOutbox(key) && !claimed.has(key.SK));
    const marks = fresh.filter(isMark);
    await writeReceipts(marks);
    const refused = await settled(fresh.filter((update) => !isMark(update)));
    const made = updates.filter((update) => !marks.includes(update) && !refused.includes(update));
    const results = await table.updateEach(made.map((update) => withoutExpiry(update)));
    for (const [i, update] of made.entries()) {
      if (!isOutbox(update.key) || !results[i]?.ok) continue;
      if (isMark(update)) claimed.delete(update.key.SK);
      else claimed.add(update.key.SK);
    }
    return updates.map((update) => {
      if (marks.includes(update)) return { ok: true };
      return results[made.indexOf(update)] ?? { ok: false, refused: true };
    });
  }

  async function seen(items: readonly Item[]): Promise<Item[]> {
    const [first] = items.filter(isUntouched);
    if (first === undefined) return [...items];
    const published = await sharedReceipts(minuteOfRow(first));
    return items.map((item) => {
      const publishedAt = isUntouched(item) ? published.get(String(item.SK)) : undefined;
      return publishedAt === undefined ? item : { ...item, status: 'PUBLISHED', publishedAt };
    });
  }

  /** A row that nobody has changed since its birth; one that was claimed and given back has its born lease, and no expiry. */
  function isUntouched(item: Item): boolean {
    return item.status === 'PENDING' && isOutbox(item) && (bornDays === 0 || item.expiresAt !== undefined);
  }

  /** A row is born with its end; one that goes DEAD has none. */
  function withExpiry(action: TransactAction): TransactAction {
    const { Put, Update } = action;
    if (Put?.Item !== undefined && isOutbox(Put.Item))
      return { Put: { ...Put, Item: { ...Put.Item, expiresAt: expiresAt(clock.now(), bornDays) } } };
    if (Update === undefined || !/^SET #status = :DEAD,/.test(Update.UpdateExpression ?? '')) return action;
    return { Update: { ...Update, UpdateExpression: `${Update.UpdateExpression} REMOVE expiresAt` } };
  }

  return {
    ...table,
    updateEach,
    transact: (actions, token) => table.transact(bornDays === 0 ? actions : actions.map(withExpiry), token),
    get: async (key, settings) => {
      const item = await table.get(key, settings);
      return item && (await seen([item]))[0];
    },
    query: async (query) => {
      const page = await table.query(query);
      const status = query.where?.status;
      const items = (await seen(page.items)).filter((item) => status === undefined || item.status === status);
      return { ...page, items };
    },
  };
}

/** Makes a receipt. @param now - when its events were published, epoch milliseconds */
export function createReceipt(
  minute: string,
  token: string,
  eventIds: readonly string[],
  now: number,
  bornDays: number,
): Receipt {
  return {
    PK: `RECEIPT#${minute}`,
    SK: token,
    schema: SCHEMA,
    eventIds: new Set(eventIds),
    publishedAt: now,
    expiresAt: expiresAt(now, bornDays + RECEIPT_MORE_DAYS),
  };
}

/** The sort keys of the rows that have a receipt, and when they were published. */
type Published = ReadonlyMap<string, number>;

function byMinute(updates: readonly EachUpdate[]): Map<string, EachUpdate[]> {
  const minutes = new Map<string, EachUpdate[]>();
  for (const update of updates) {
    const minute = minuteOfRow(update.key);
    minutes.set(minute, [...(minutes.get(minute) ?? []), update]);
  }
  return minutes;
}

function withoutExpiry(update: EachUpdate): EachUpdate {
  if (!isOutbox(update.key) || isMark(update)) return update;
  return { ...update, remove: [...(update.remove ?? []), 'expiresAt'] };
}

function isMark({ set }: EachUpdate): boolean {
  return set.status === 'PUBLISHED';
}

function isOutbox({ PK }: Item | Key): boolean {
  return String(PK).startsWith(OUTBOX_PREFIX);
}

/** From `OUTBOX#<minute>#<shard>`. */
function minuteOfRow({ PK }: Item | Key): string {
  return String(PK).split('#')[1] ?? '';
}
