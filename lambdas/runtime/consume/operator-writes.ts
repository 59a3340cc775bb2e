import { MailroomError } from '../base/errors.ts';
import { checkedActions } from '../store/dynamo/table-checks.ts';
import { SYSTEM_PREFIXES } from '../store/keys.ts';
import type { TransactAction } from '../store/table.ts';

/**
 * Checks what an operator writes in DynamoDB.
 *
 * @throws `BAD_ITEM`, and `BAD_WRITE`, also for a row of Mailroom: its events are `events`, and no operator writes any other row of it
 */
export function checkOperatorWrites(writes: readonly TransactAction[]): void {
  for (const [index, { kind, request }] of checkedActions(writes).entries()) {
    const { PK } = (kind === 'Put' ? request.Item : request.Key) ?? {};
    const reserved = SYSTEM_PREFIXES.find((prefix) => String(PK).startsWith(prefix));
    if (reserved === undefined) continue;
    throw new MailroomError(
      'BAD_WRITE',
      `writes[${index}] has a partition key that begins with "${reserved}", which only Mailroom uses. Write rows of the service.`,
    );
  }
}
