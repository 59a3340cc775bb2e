import { Annotations, RemovalPolicy } from 'aws-cdk-lib';
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
  failedKey,
  HEARTBEAT_STATE_KEY,
  INBOX_PREFIX,
  LAST_PREFIX,
  OUTBOX_PREFIX,
  rejectedKey,
  SWEEP_STATE_KEY,
  SYSTEM_PREFIXES,
} from '../../lambdas/runtime/store/keys.ts';
import { EXPIRES_AT } from '../../lambdas/runtime/store/rows.ts';
import { refuse } from '../checks/refusal.ts';
import { warnOfDualWrites } from './dual-writes.ts';
import { grantTableKey } from './encryption.ts';

/** Properties of a {@link MailroomTable}. */
export interface MailroomTableProps {
  /**
   * The removal policy of the table. Use `DESTROY` only for stages with disposable data: the table then has
   * no deletion protection and no point-in-time recovery.
   *
   * @default RETAIN
   */
  readonly removalPolicy?: RemovalPolicy;
  /** Read and write units per second that the table can serve immediately. @default the initial throughput of a new table */
  readonly warmThroughput?: CfnGlobalTable.WarmThroughputProperty;
  /**
   * The only role that the table's policy lets delete or overwrite inbox rows, if its own policies allow it too: for emergencies
   * in which a row must go at any cost. Its ARN is compared with `aws:PrincipalArn`, which for an assumed role is the role's own
   * ARN, so it applies to every session of the role. A role of another stack must not depend on this one: import it with
   * `Role.fromRoleName` or `Role.fromRoleArn`.
   *
   * @default no role
   */
  readonly breakGlassRole?: IRole;
  /** Encrypts the table. Each grant includes the caller's permissions on the key. @default a key that DynamoDB owns */
  readonly encryptionKey?: IKey;
}

const DEAD_KEYS = 'DEAD#*';
const UNSETTLED_KEYS = 'SWEEP#*';
const OUTBOX_KEYS = `${OUTBOX_PREFIX}*`;

/** Actions that need no right to encrypt. */
const READS = ['GetItem', 'BatchGetItem', 'Query'];

/** Actions that a service may use on its own rows. */
const DOMAIN = ['GetItem', 'Query', 'PutItem', 'UpdateItem', 'ConditionCheckItem', 'DeleteItem'];

/** Every action that removes, replaces or imports an item; inbox rows and last applied sequences are only ever updated. */
const REPLACING = ['BatchWriteItem', 'DeleteItem', 'PartiQLDelete', 'PartiQLInsert', 'PutItem'];

/**
 * The one table: domain rows, the outbox, the inbox and their pointers. On-demand, with a stream of new images for the relay, and
 * without an index.
 *
 * Access is granted by intent and by partition key (`dynamodb:LeadingKeys`). The table's policy denies every principal,
 * administrators included, to delete or replace an inbox row or a last applied sequence: a message redelivered without its inbox row is
 * a second charge, and without its sequence an older state. Rows leave only by TTL, which is DynamoDB's own process (`dynamodb.amazonaws.com` in the stream's records) and not a principal
 * that a policy could name.
 *
 * In a table's policy, only an explicit deny limits principals whose own policies allow an action
 * (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-auth-iam-id-based-policies-DDB.html), and all of these
 * actions support the partition key condition
 * (https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html). The deny does not stop a
 * principal who may change the policy itself, or update a row; both take a second step and leave a trail.
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
   * Lets a function put rows on the outbox and cancel scheduled events, but not read or delete rows. IAM cannot require that a put creates
   * a row, nor check its `source`: a principal with this right can publish as any service of the Mailroom, and can replace a row. So one
   * Mailroom is one trust domain.
   */
  grantOutbox(grantee: IGrantable): void {
    warnOfDualWrites(this, grantee);
    this.grantRows(grantee, ['PutItem', 'UpdateItem'], [OUTBOX_KEYS]);
  }

  /**
   * Lets a function cancel scheduled events. IAM cannot limit an update to that: a principal with this right can also change or add a
   * row, so it belongs to the Mailroom's trust domain, too.
   */
  grantCancel(grantee: IGrantable): void {
    this.grantRows(grantee, ['UpdateItem'], [OUTBOX_KEYS]);
  }

  /**
   * Lets a function mark the outbox rows that it has published. IAM cannot limit it to rows of its own service; a principal that may
   * put outbox rows can replace any of them anyway.
   */
  grantMark(grantee: IGrantable): void {
    this.grantRows(grantee, ['PartiQLUpdate'], [OUTBOX_KEYS]);
  }

  /** Lets the stream relay read whether a producer has marked a row. */
  grantReadOfMarks(grantee: IGrantable): void {
    this.grantRows(grantee, ['GetItem'], [OUTBOX_KEYS]);
  }

  /** Lets a function read, write and delete rows under a service's own partition keys, and check them in transactions. */
  grantDomain(grantee: IGrantable, keys: readonly string[]): void {
    refuse(
      `The table ${this.node.path}`,
      keys.flatMap((key) => domainKeyProblems(key)),
    );
    for (const key of keys.filter(isPrefixWithoutWildcard)) {
      Annotations.of(this).addWarningV2(
        `cdk-mailroom:domainKeyWithoutWildcard-${key}`,
        `The domain key "${key}" of ${this.node.path} has no "*", so it grants only the partition key "${key}" itself. Use "${key}*" for every ` +
          'key that begins with it, or acknowledge this warning.',
      );
    }
    if (keys.length === 0) return;
    warnOfDualWrites(this, grantee);
    this.grantRows(grantee, DOMAIN, keys);
  }

  /** Lets a function publish: claim and mark outbox rows, and keep the pointers to DEAD ones. It cannot delete one, but an update also adds a row. */
  grantRelay(grantee: IGrantable): void {
    this.grantRows(grantee, ['UpdateItem', 'PartiQLUpdate'], [OUTBOX_KEYS]);
    this.grantRows(grantee, ['PutItem', 'DeleteItem'], [DEAD_KEYS]);
  }

  /**
   * Lets a function find events to publish: read the outbox and its pointers, and keep the list of unsettled minutes and the
   * sweep's state.
   */
  grantSweep(grantee: IGrantable): void {
    this.grantRows(grantee, ['Query'], [OUTBOX_KEYS, DEAD_KEYS, UNSETTLED_KEYS]);
    this.grantRows(grantee, ['PutItem', 'DeleteItem'], [UNSETTLED_KEYS]);
    this.grantRows(grantee, ['GetItem', 'UpdateItem'], [SWEEP_STATE_KEY.PK]);
    Grant.addToPrincipal({ grantee, actions: ['dynamodb:DescribeTable'], resourceArns: [this.tableArn] });
  }

  /** Lets a function compare every event with every inbox, read-only. */
  grantAudit(grantee: IGrantable): void {
    this.grantRows(grantee, ['Query'], [OUTBOX_KEYS]);
    this.grantRows(grantee, ['GetItem', 'BatchGetItem'], [`${INBOX_PREFIX}*`, SWEEP_STATE_KEY.PK]);
  }

  /** Lets a function commit heartbeats, and read which consumers acknowledged them. */
  grantHeartbeat(grantee: IGrantable): void {
    this.grantRows(grantee, ['PutItem'], [OUTBOX_KEYS, HEARTBEAT_STATE_KEY.PK]);
    this.grantRows(grantee, ['GetItem'], [HEARTBEAT_STATE_KEY.PK, `${INBOX_PREFIX}*`]);
  }

  /** Lets a function list the rejected messages of every consumer. */
  grantRejected(grantee: IGrantable): void {
    this.grantRows(grantee, ['Query'], [rejectedKey('*', '').PK]);
  }

  /**
   * Lets a function keep the inbox of one consumer and the last applied sequences of its aggregates, and of no other. It can neither
   * delete nor replace such a row.
   */
  grantInbox(grantee: IGrantable, consumer: string): void {
    const own = [INBOX_PREFIX, LAST_PREFIX].map((prefix) => `${prefix}${consumer}#*`);
    this.grantRows(grantee, ['GetItem', 'UpdateItem'], own);
    this.grantRows(
      grantee,
      ['PutItem', 'DeleteItem'],
      [rejectedKey(consumer, '').PK, failedKey(consumer, '').PK],
    );
  }

  private grantRows(grantee: IGrantable, actions: readonly string[], keys: readonly string[]): void {
    if (this.ownKey)
      grantTableKey(this.ownKey, grantee, this, !actions.every((action) => READS.includes(action)));
    Grant.addToPrincipal({
      grantee,
      actions: actions.map((action) => `dynamodb:${action}`),
      resourceArns: [this.tableArn],
      conditions: {
        'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [...keys] },
        // "All values" is also true of an empty list (IAM User Guide, multivalued context keys), so a request must name its keys.
        Null: { 'dynamodb:LeadingKeys': 'false' },
      },
    });
  }
}

/**
 * A table policy is part of its table and cannot reference the table's ARN; `*` means the table itself. Principals without an ARN
 * are denied too: `ArnNotEquals` also matches a missing value.
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
          'ForAnyValue:StringLike': { 'dynamodb:LeadingKeys': [`${INBOX_PREFIX}*`, `${LAST_PREFIX}*`] },
          ...(breakGlassRole && { ArnNotEquals: { 'aws:PrincipalArn': breakGlassRole.roleArn } }),
        },
      }),
    ],
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
