import { RemovalPolicy } from 'aws-cdk-lib';
import {
  AttributeType,
  Billing,
  type CfnGlobalTable,
  StreamViewType,
  TableEncryptionV2,
  TableV2,
} from 'aws-cdk-lib/aws-dynamodb';
import {
  AnyPrincipal,
  Effect,
  Grant,
  type IGrantable,
  PolicyDocument,
  PolicyStatement,
} from 'aws-cdk-lib/aws-iam';
import type { Construct } from 'constructs';
import {
  EXPIRES_AT,
  INBOX_PREFIX,
  OUTBOX_PREFIX,
  rejectedKey,
  SWEEP_STATE_KEY,
} from '../lambdas/runtime/rows.ts';
import { refuse } from './refusal.ts';

/** What a {@link MailroomTable} may be told. */
export interface MailroomTableProps {
  /**
   * What becomes of the table when its stack is deleted. `DESTROY` is for stages whose data nobody needs: such a
   * table has no deletion protection and no point-in-time recovery either.
   *
   * @default RETAIN
   */
  readonly removalPolicy?: RemovalPolicy;
  /** Units a second that the table carries from its first moment. @default what DynamoDB gives a new table */
  readonly warmThroughput?: CfnGlobalTable.WarmThroughputProperty;
}

const DEAD_KEYS = 'DEAD#*';
const UNSETTLED_KEYS = 'SWEEP#*';
const OUTBOX_KEYS = `${OUTBOX_PREFIX}*`;

/** Rows that only Mailroom writes: no domain key may reach one. */
const SYSTEM_PREFIXES = [OUTBOX_PREFIX, INBOX_PREFIX, 'DEAD#', 'SWEEP', 'REJECTED#'];

const READ = ['dynamodb:GetItem', 'dynamodb:Query'];
const WRITE = ['dynamodb:PutItem', 'dynamodb:UpdateItem', 'dynamodb:ConditionCheckItem'];

/**
 * The one table: domain rows, the outbox, the inbox and their pointers. On-demand, with a stream of new images
 * for the relay and no index.
 *
 * What may be done to it is granted by intent and by partition key (`dynamodb:LeadingKeys`), and nobody may
 * delete an inbox row: the table's own policy denies it, to people and to roles with broader rights too, because
 * a deleted inbox row and a redriven message are a second charge. TTL is the only way out.
 *
 * @example
 * ```ts
 * const table = new MailroomTable(this, 'Table');
 * table.grantOutbox(api);
 * table.grantDomain(api, ['ORDER#*']);
 * ```
 */
export class MailroomTable extends TableV2 {
  constructor(scope: Construct, id: string, props: MailroomTableProps = {}) {
    const removalPolicy = props.removalPolicy ?? RemovalPolicy.RETAIN;
    const keep = removalPolicy !== RemovalPolicy.DESTROY;
    super(scope, id, {
      partitionKey: { name: 'PK', type: AttributeType.STRING },
      sortKey: { name: 'SK', type: AttributeType.STRING },
      billing: Billing.onDemand(),
      timeToLiveAttribute: EXPIRES_AT,
      dynamoStream: StreamViewType.NEW_IMAGE,
      encryption: TableEncryptionV2.dynamoOwnedKey(),
      pointInTimeRecoverySpecification: keep ? { pointInTimeRecoveryEnabled: true } : undefined,
      deletionProtection: keep,
      removalPolicy,
      warmThroughput: props.warmThroughput,
      resourcePolicy: keepInbox(),
    });
  }

  /** Lets it add events to the outbox. It can neither read them nor change what was written. */
  grantOutbox(grantee: IGrantable): Grant {
    return this.grantRows(grantee, ['dynamodb:PutItem'], [OUTBOX_KEYS]);
  }

  /** Lets it read, write and delete the rows of a service's own partition keys, and test them in transactions. */
  grantDomain(grantee: IGrantable, keys: readonly string[]): void {
    refuse(
      `The domain keys of ${this.node.path}`,
      keys.flatMap((key) => domainKeyProblems(key)),
    );
    if (keys.length > 0) this.grantRows(grantee, [...READ, ...WRITE, 'dynamodb:DeleteItem'], keys);
  }

  /**
   * Lets it publish: read the outbox, claim and mark its rows, and keep the pointers and the sweep's state. It can
   * neither add an event nor delete one.
   */
  grantRelay(grantee: IGrantable): void {
    const state = SWEEP_STATE_KEY.PK;
    this.grantRows(grantee, READ, [OUTBOX_KEYS, DEAD_KEYS, UNSETTLED_KEYS, state]);
    this.grantRows(
      grantee,
      ['dynamodb:UpdateItem', 'dynamodb:PartiQLUpdate', 'dynamodb:ConditionCheckItem'],
      [OUTBOX_KEYS],
    );
    this.grantRows(grantee, WRITE, [DEAD_KEYS, UNSETTLED_KEYS, state]);
    this.grantRows(grantee, ['dynamodb:DeleteItem'], [DEAD_KEYS, UNSETTLED_KEYS]);
    Grant.addToPrincipal({ grantee, actions: ['dynamodb:DescribeTable'], resourceArns: [this.tableArn] });
  }

  /** Lets it keep the inbox of one consumer, and of no other. It cannot delete an inbox row. */
  grantInbox(grantee: IGrantable, consumer: string): void {
    const inbox = `${INBOX_PREFIX}${consumer}#*`;
    const rejected = rejectedKey(consumer, '').PK;
    this.grantRows(grantee, [...READ, ...WRITE, 'dynamodb:PartiQLUpdate'], [inbox]);
    this.grantRows(grantee, [...READ, ...WRITE, 'dynamodb:DeleteItem'], [rejected]);
  }

  private grantRows(grantee: IGrantable, actions: readonly string[], keys: readonly string[]): Grant {
    return Grant.addToPrincipal({
      grantee,
      actions: [...actions],
      resourceArns: [this.tableArn],
      conditions: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [...keys] } },
    });
  }
}

/** A table policy is part of its table and cannot name the table's ARN; `*` stands for the table itself. */
function keepInbox(): PolicyDocument {
  return new PolicyDocument({
    statements: [
      new PolicyStatement({
        sid: 'NobodyDeletesInboxRows',
        effect: Effect.DENY,
        principals: [new AnyPrincipal()],
        actions: ['dynamodb:DeleteItem', 'dynamodb:BatchWriteItem', 'dynamodb:PartiQLDelete'],
        resources: ['*'],
        conditions: { 'ForAnyValue:StringLike': { 'dynamodb:LeadingKeys': [`${INBOX_PREFIX}*`] } },
      }),
    ],
  });
}

function domainKeyProblems(key: string): string[] {
  const wildcard = key.search(/[*?]/);
  const literal = wildcard === -1 ? key : key.slice(0, wildcard);
  const reached = SYSTEM_PREFIXES.find(
    (prefix) => literal.startsWith(prefix) || (wildcard !== -1 && prefix.startsWith(literal)),
  );
  if (reached === undefined && key !== '') return [];
  return [
    `"${key}" ${reached === undefined ? 'is empty' : `reaches Mailroom's own rows (${reached}…)`}; a domain key is a ` +
      'partition key of the service, or the beginning of one followed by "*". Use one like "ORDER#*".',
  ];
}
