import { Annotations } from 'aws-cdk-lib';
import type { IGrantable } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { IConstruct } from 'constructs';
import {
  failedKey,
  INBOX_PREFIX,
  LAST_PREFIX,
  LIMIT_PREFIX,
  rejectedKey,
  SYSTEM_PREFIXES,
} from '../../lambdas/runtime/store/keys.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import { grantTo } from '../checks/granted.ts';
import { refuse } from '../checks/refusal.ts';
import { warnOfDualWrites } from './dual-writes.ts';
import { grantTableKey } from './encryption.ts';

/** The table of a Mailroom as producers and consumers see it: that of this app, or an imported one. */
export interface IMailroomTable extends IConstruct {
  readonly tableName: string;
  readonly tableArn: string;
  /** @internal */
  readonly _key: IKey | undefined;
  /**
   * Lets a function put rows on the outbox and cancel scheduled events, but not read or delete rows. IAM cannot require that a put creates
   * a row, nor check its `source`: a principal with this right can publish as any service of the Mailroom, and can replace a row. So one
   * Mailroom is one trust domain.
   */
  grantOutbox(grantee: IGrantable): void;
  /**
   * Lets a function cancel scheduled events. IAM cannot limit an update to that: a principal with this right can also change or add a
   * row, so it belongs to the Mailroom's trust domain, too.
   */
  grantCancel(grantee: IGrantable): void;
  /** Lets a function read, write and delete rows under a service's own partition keys, and check them in transactions. */
  grantDomain(grantee: IGrantable, keys: readonly string[]): void;
  /**
   * Lets a function keep the inbox of one consumer and the last applied sequences of its aggregates, and of no other, and take tokens
   * of its limits and of shared ones. It can neither delete nor replace such a row.
   */
  grantInbox(grantee: IGrantable, consumer: string): void;
}

/** The partition keys of the outbox. */
export const OUTBOX_KEYS = `${OUTBOX_PREFIX}*`;

/** Actions that need no right to encrypt. */
const READS = ['GetItem', 'BatchGetItem', 'Query'];

/** Actions that a service may use on its own rows. */
const DOMAIN = ['GetItem', 'Query', 'PutItem', 'UpdateItem', 'ConditionCheckItem', 'DeleteItem'];

/** See {@link IMailroomTable.grantOutbox}. */
export function grantOutbox(table: IMailroomTable, grantee: IGrantable): void {
  warnOfDualWrites(table, grantee);
  grantRows(table, grantee, ['PutItem', 'UpdateItem'], [OUTBOX_KEYS]);
}

/** See {@link IMailroomTable.grantCancel}. */
export function grantCancel(table: IMailroomTable, grantee: IGrantable): void {
  grantRows(table, grantee, ['UpdateItem'], [OUTBOX_KEYS]);
}

/** See {@link IMailroomTable.grantDomain}. */
export function grantDomain(table: IMailroomTable, grantee: IGrantable, keys: readonly string[]): void {
  refuse(
    `The table ${table.node.path}`,
    keys.flatMap((key) => domainKeyProblems(key)),
  );
  for (const key of keys.filter(isPrefixWithoutWildcard)) {
    Annotations.of(table).addWarningV2(
      `cdk-mailroom:domainKeyWithoutWildcard-${key}`,
      `The domain key "${key}" of ${table.node.path} has no "*", so it grants only the partition key "${key}" itself. Use "${key}*" for every ` +
        'key that begins with it, or acknowledge this warning.',
    );
  }
  if (keys.length === 0) return;
  warnOfDualWrites(table, grantee);
  grantRows(table, grantee, DOMAIN, keys);
}

/** See {@link IMailroomTable.grantInbox}. */
export function grantInbox(table: IMailroomTable, grantee: IGrantable, consumer: string): void {
  const own = [INBOX_PREFIX, LAST_PREFIX, LIMIT_PREFIX].map((prefix) => `${prefix}${consumer}#*`);
  // Consumers share a limit by its name.
  grantRows(table, grantee, ['GetItem', 'UpdateItem'], [...own, `${LIMIT_PREFIX}#*`]);
  grantRows(
    table,
    grantee,
    ['PutItem', 'DeleteItem'],
    [rejectedKey(consumer, '').PK, failedKey(consumer, '').PK],
  );
}

/** Lets a grantee act on rows with these partition keys only. */
export function grantRows(
  table: IMailroomTable,
  grantee: IGrantable,
  actions: readonly string[],
  keys: readonly string[],
): void {
  if (table._key)
    grantTableKey(table._key, grantee, table, !actions.every((action) => READS.includes(action)));
  grantTo(table, {
    grantee,
    actions: actions.map((action) => `dynamodb:${action}`),
    resourceArns: [table.tableArn],
    conditions: {
      'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [...keys] },
      // "All values" is also true of an empty list (IAM User Guide, multivalued context keys), so a request must name its keys.
      Null: { 'dynamodb:LeadingKeys': 'false' },
    },
  });
}

/** True for `ORDER#`, which no service uses as a whole key. */
function isPrefixWithoutWildcard(key: string): boolean {
  return /[^\p{L}\p{N}*?]$/u.test(key) && !/[*?]/.test(key);
}

function domainKeyProblems(key: string): string[] {
  const wildcard = key.search(/[*?]/);
  const literal = wildcard === -1 ? key : key.slice(0, wildcard);
  const reached = SYSTEM_PREFIXES.find(
    (prefix) => literal.startsWith(prefix) || (wildcard !== -1 && prefix.startsWith(literal)),
  );
  if (reached === undefined && key !== '') return [];
  return [
    `domain key "${key}" ${reached === undefined ? 'is empty' : `matches Mailroom's own rows (${reached}…)`}. A domain key is a ` +
      'partition key of the service, or a prefix of one followed by "*". Use one like "ORDER#*".',
  ];
}
