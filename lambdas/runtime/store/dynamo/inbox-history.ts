import { isMailroomError, MailroomError } from '../../base/errors.ts';
import { openedNow } from '../../inbox/inbox-history.ts';
import { unreadableMark } from '../event-id.ts';
import type { InboxHistory } from '../inbox-row.ts';
import { inboxHistoryKey } from '../keys.ts';
import { writeWithRetry } from '../retry.ts';
import { asRow, isKnownSchema, SCHEMA } from '../row-schema.ts';
import { conditionalUpdate } from '../row-update.ts';
import { schemaProblem } from '../stored-rows.ts';
import type { InboxAccess, InboxContext } from './inbox-context.ts';

/** The maximum number of writes of the history by one start, in competition with others. */
const WRITES_MAX = 5;

/**
 * Reads the inbox's history, and records this function's retention in it before any row is written under it. Code that
 * judges a message waits for this.
 */
export function openInbox(inbox: InboxContext): Promise<void> {
  return openedNow(inbox, () => readHistory(inbox));
}

async function readHistory(inbox: InboxContext): Promise<void> {
  const { table, consumer, inboxRetentionDays } = inbox;
  let item = await table.get(inboxHistoryKey(consumer), { consistent: true });
  for (let writes = 1; ; writes += 1) {
    const found = item === undefined ? undefined : asRow<InboxHistory>(item);
    if (found !== undefined && !isKnownSchema(found.schema))
      throw new MailroomError(
        'UNREADABLE_ROW',
        `The retention history of the inbox of ${consumer} cannot be read: ${schemaProblem(found.schema)}. No message runs until you deploy the newer version again.`,
      );
    try {
      const recorded = found?.retentions.at(-1)?.days === inboxRetentionDays;
      inbox.memory.history = found !== undefined && recorded ? found : await recordRetention(inbox, found);
      return;
    } catch (error) {
      if (!isMailroomError(error, 'CONDITION_FAILED') || writes === WRITES_MAX) throw error;
      item = error.item; // another function was faster, or the response to this write was lost
    }
  }
}

/** Adds this function's retention to the history that was read. */
async function recordRetention(
  { table, clock, consumer, inboxRetentionDays }: InboxContext,
  found: InboxHistory | undefined,
): Promise<InboxHistory> {
  const changedAt = Math.max(clock.now(), (found?.changedAt ?? 0) + 1);
  const retentions = [...(found?.retentions ?? []), { days: inboxRetentionDays, since: changedAt }];
  const key = inboxHistoryKey(consumer);
  const unchanged =
    found === undefined
      ? { condition: 'attribute_not_exists(PK)', values: {} }
      : { condition: 'changedAt = :found', values: { ':found': found.changedAt } };
  const change = { set: { retentions, changedAt, schema: SCHEMA } };
  await table.write({ Update: conditionalUpdate(key, change, unchanged) });
  return { ...found, ...key, schema: SCHEMA, retentions, changedAt };
}

/**
 * Marks an unreadable message in the history, before an operator settles it. A function that can read the message starts later, so it has
 * read the mark with the history, and looks for the row of the body before it runs the message.
 */
export async function markUnreadable({ consumer, ...deps }: InboxAccess, unreadId: string): Promise<void> {
  const computed = {
    retentions: 'if_not_exists(retentions, :none)',
    changedAt: 'if_not_exists(changedAt, :never)',
    '#schema': 'if_not_exists(#schema, :schema)',
  };
  const add = { unreadableSettled: new Set([unreadableMark(unreadId)]) };
  const change = { set: {}, computed, values: { ':none': [], ':never': 0 }, add };
  const always = { condition: 'attribute_not_exists(PK) OR attribute_exists(PK)', values: {} };
  await writeWithRetry(deps, { Update: conditionalUpdate(inboxHistoryKey(consumer), change, always) });
}
