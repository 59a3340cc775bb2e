import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { INBOX_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { asRow } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { Actor } from './actor.ts';
import { type ConsumerParts, tableNow, violate } from './consumer-parts.ts';
import { mayExpire } from './inbox-rules.ts';

/** Runs DynamoDB's TTL as an actor: each deletion is a step that happens at some time after the item's `expiresAt`. */
export async function expireItems(parts: ConsumerParts, actor: Actor): Promise<void> {
  for (;;) {
    const expiries = tableNow(parts).items.flatMap(({ expiresAt }) =>
      typeof expiresAt === 'number' ? expiresAt : [],
    );
    if (expiries.length === 0) return;
    await actor.clock.sleep(Math.max(1, Math.min(...expiries) * 1_000 + 1 - parts.scheduler.now()));
    await actor.step('deletes what has expired', () => deleteExpired(parts));
  }
}

function deleteExpired(parts: ConsumerParts): void {
  const { memory, past } = parts;
  const expired = tableNow(parts).items;
  memory.expire();
  parts.now = undefined;
  for (const before of expired) {
    const key = { PK: String(before.PK), SK: String(before.SK) };
    if (memory.item(key) !== undefined) continue;
    past.changed({ key, before, after: undefined });
    const wrong = expiryViolation(before);
    if (wrong !== undefined) violate(parts, wrong);
  }
}

/** Only a message that needs no more work, or that could not be read, may expire. */
function expiryViolation(item: Item): string | undefined {
  if (!String(item.PK).startsWith(INBOX_PREFIX)) return undefined;
  const row = asRow<InboxRow>({ ...item });
  return mayExpire(row) ? undefined : `TTL deleted a message that is ${row.status}`;
}
