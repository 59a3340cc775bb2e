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
  type IRole,
  PolicyDocument,
  PolicyStatement,
} from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Construct } from 'constructs';
import {
  EXPIRES_AT,
  failedKey,
  INBOX_PREFIX,
  OUTBOX_PREFIX,
  rejectedKey,
  SWEEP_STATE_KEY,
} from '../lambdas/runtime/store/rows.ts';
import { grantTableKey } from './encryption.ts';
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
  /**
   * The one role that the table's policy lets delete or overwrite inbox rows, where its own policies allow it too: for
   * the day on which a row must go, whatever it costs. Its ARN is compared with `aws:PrincipalArn`, which for an assumed
   * role is the role's own ARN, so it holds for whoever has assumed it. A role of another stack must not need this one:
   * import it, with `Role.fromRoleName` or `Role.fromRoleArn`.
   *
   * @default nobody may
   */
  readonly breakGlassRole?: IRole;
  /** Encrypts the table. Each grant includes what its caller needs of the key. @default a key that DynamoDB owns */
  readonly encryptionKey?: IKey;
}

const DEAD_KEYS = 'DEAD#*';
const UNSETTLED_KEYS = 'SWEEP#*';
const OUTBOX_KEYS = `${OUTBOX_PREFIX}*`;

/** Rows that only Mailroom writes: no domain key may reach one. */
const SYSTEM_PREFIXES = [
  OUTBOX_PREFIX,
  INBOX_PREFIX,
  'DEAD#',
  'SWEEP',
  'REJECTED#',
  'FAILED#',
  'OPERATIONS#',
];

const isRead = (action: string) => action === 'GetItem' || action === 'Query';

/** A service may do to its own rows whatever an item needs. */
const DOMAIN = ['GetItem', 'Query', 'PutItem', 'UpdateItem', 'ConditionCheckItem', 'DeleteItem'];

/** Every way to remove or replace an item, or to bring one in from outside; an inbox row is only ever updated. */
const REPLACING = ['BatchWriteItem', 'DeleteItem', 'PartiQLDelete', 'PartiQLInsert', 'PutItem'];

/**
 * The one table: domain rows, the outbox, the inbox and their pointers. On-demand, with a stream of new images
 * for the relay and no index.
 *
 * What may be done to it is granted by intent and by partition key (`dynamodb:LeadingKeys`), and nobody may
 * delete an inbox row or put another in its place: the table's own policy denies it, to administrators too, because
 * a message that comes back without its inbox row is a second charge. TTL is the only way out: it is DynamoDB's own
 * process (`dynamodb.amazonaws.com` in the stream's records), no principal whom a policy could name.
 *
 * Of a policy on the table an explicit deny is the only thing that limits who is allowed by policies of their own
 * (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-auth-iam-id-based-policies-DDB.html), and
 * all of these actions know the partition keys
 * (https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html). What it cannot do is
 * hold against whoever may change the policy itself, or update a row: those are two steps, and in the trail.
 *
 * @example
 * ```ts
 * const table = new MailroomTable(this, 'Table');
 * table.grantOutbox(api);
 * table.grantDomain(api, ['ORDER#*']);
 * ```
 */
export class MailroomTable extends TableV2 {
  private readonly ownKey: IKey | undefined;

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
      resourcePolicy: keepInbox(props.breakGlassRole),
    });
    this.ownKey = props.encryptionKey;
    if (this.ownKey) this.encryptWith(this.ownKey);
  }

  /** `TableEncryptionV2.customerManagedKey` cannot be rendered in a stack without a region. */
  private encryptWith(key: IKey): void {
    const table = this.node.defaultChild as CfnGlobalTable;
    table.addPropertyOverride('SSESpecification', { SSEEnabled: true, SSEType: 'KMS' });
    table.addPropertyOverride('Replicas.0.SSESpecification', { KMSMasterKeyId: key.keyArn });
  }

  /**
   * Lets it put rows on the outbox: it cannot read, update or delete them. IAM cannot demand that a put creates a row, nor check its
   * `source`: whoever has this right can publish as any service of the Mailroom, and can replace a row. So one Mailroom is one
   * trust domain, and only those get the right who publish.
   */
  grantOutbox(grantee: IGrantable): void {
    this.grantRows(grantee, ['PutItem'], [OUTBOX_KEYS]);
  }

  /** Lets it read, write and delete the rows of a service's own partition keys, and test them in transactions. */
  grantDomain(grantee: IGrantable, keys: readonly string[]): void {
    refuse(
      `The domain keys of ${this.node.path}`,
      keys.flatMap((key) => domainKeyProblems(key)),
    );
    if (keys.length > 0) this.grantRows(grantee, DOMAIN, keys);
  }

  /** Lets it publish: claim and mark outbox rows, and keep the pointers to DEAD ones. It can neither add an event nor delete one. */
  grantRelay(grantee: IGrantable): void {
    this.grantRows(grantee, ['UpdateItem', 'PartiQLUpdate'], [OUTBOX_KEYS]);
    this.grantRows(grantee, ['PutItem', 'DeleteItem'], [DEAD_KEYS]);
  }

  /** Lets it find what to publish: read the outbox and its pointers, and keep the unsettled minutes and the sweep's state. */
  grantSweep(grantee: IGrantable): void {
    this.grantRows(grantee, ['Query'], [OUTBOX_KEYS, DEAD_KEYS, UNSETTLED_KEYS]);
    this.grantRows(grantee, ['PutItem', 'DeleteItem'], [UNSETTLED_KEYS]);
    this.grantRows(grantee, ['GetItem', 'UpdateItem'], [SWEEP_STATE_KEY.PK]);
    Grant.addToPrincipal({ grantee, actions: ['dynamodb:DescribeTable'], resourceArns: [this.tableArn] });
  }

  /** Lets it compare every event with every inbox. It can change nothing. */
  grantAudit(grantee: IGrantable): void {
    this.grantRows(grantee, ['Query'], [OUTBOX_KEYS]);
    this.grantRows(grantee, ['GetItem'], [`${INBOX_PREFIX}*`, SWEEP_STATE_KEY.PK]);
  }

  /** Lets it list the rejected messages of every consumer. */
  grantRejected(grantee: IGrantable): void {
    this.grantRows(grantee, ['Query'], [rejectedKey('*', '').PK]);
  }

  /** Lets it keep the inbox of one consumer, and of no other. It can neither delete an inbox row nor put one in its place. */
  grantInbox(grantee: IGrantable, consumer: string): void {
    this.grantRows(
      grantee,
      ['GetItem', 'Query', 'UpdateItem', 'ConditionCheckItem', 'PartiQLUpdate'],
      [`${INBOX_PREFIX}${consumer}#*`],
    );
    this.grantRows(
      grantee,
      ['PutItem', 'DeleteItem'],
      [rejectedKey(consumer, '').PK, failedKey(consumer, '').PK],
    );
  }

  private grantRows(grantee: IGrantable, actions: readonly string[], keys: readonly string[]): void {
    if (this.ownKey) grantTableKey(this.ownKey, grantee, this, !actions.every(isRead));
    Grant.addToPrincipal({
      grantee,
      actions: actions.map((action) => `dynamodb:${action}`),
      resourceArns: [this.tableArn],
      conditions: {
        'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [...keys] },
        // "All values" is also true of none (IAM User Guide, multivalued context keys): a request must name its keys.
        Null: { 'dynamodb:LeadingKeys': 'false' },
      },
    });
  }
}

/**
 * A table policy is part of its table and cannot name the table's ARN; `*` stands for the table itself. Principals
 * without an ARN are no exception: `ArnNotEquals` also holds where there is nothing to compare.
 */
function keepInbox(breakGlassRole: IRole | undefined): PolicyDocument {
  return new PolicyDocument({
    statements: [
      new PolicyStatement({
        sid: 'InboxRowsAreOnlyUpdated',
        effect: Effect.DENY,
        principals: [new AnyPrincipal()],
        actions: REPLACING.map((action) => `dynamodb:${action}`),
        resources: ['*'],
        conditions: {
          'ForAnyValue:StringLike': { 'dynamodb:LeadingKeys': [`${INBOX_PREFIX}*`] },
          ...(breakGlassRole && { ArnNotEquals: { 'aws:PrincipalArn': breakGlassRole.roleArn } }),
        },
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
