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
  type IGrantable,
  type IRole,
  PolicyDocument,
  PolicyStatement,
} from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Construct } from 'constructs';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import {
  HEARTBEAT_STATE_KEY,
  INBOX_PREFIX,
  LAST_PREFIX,
  rejectedKey,
  SWEEP_STATE_KEY,
} from '../../lambdas/runtime/store/keys.ts';
import { EXPIRES_AT } from '../../lambdas/runtime/store/row-expiry.ts';
import { grantTo } from '../checks/granted.ts';
import { refuseNames } from '../checks/refusal.ts';
import {
  grantCancel,
  grantDomain,
  grantInbox,
  grantOutbox,
  grantRows,
  type IMailroomTable,
  OUTBOX_KEYS,
} from './row-grants.ts';

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

/** Every action that removes, replaces or imports an item; inbox rows and last applied sequences are only ever updated. */
const REPLACING = ['BatchWriteItem', 'DeleteItem', 'PartiQLDelete', 'PartiQLInsert', 'PutItem'];

const NAMES: PropNames<MailroomTableProps> = {
  removalPolicy: 'optional',
  warmThroughput: 'optional',
  breakGlassRole: 'optional',
  encryptionKey: 'optional',
};

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
export class MailroomTable extends TableV2 implements IMailroomTable {
  /** @internal */
  readonly _key: IKey | undefined;

  constructor(scope: Construct, id: string, props: MailroomTableProps = {}) {
    refuseNames(`The table ${scope.node.path}/${id}`, props, NAMES);
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
    this._key = props.encryptionKey;
    if (this._key) this.encryptWith(this._key);
  }

  /** `TableEncryptionV2.customerManagedKey` cannot be rendered in a stack without a region. */
  private encryptWith(key: IKey): void {
    const table = this.node.defaultChild as CfnGlobalTable;
    table.addPropertyOverride('SSESpecification', { SSEEnabled: true, SSEType: 'KMS' });
    table.addPropertyOverride('Replicas.0.SSESpecification', { KMSMasterKeyId: key.keyArn });
  }

  /** @see IMailroomTable.grantOutbox */
  grantOutbox(grantee: IGrantable): void {
    grantOutbox(this, grantee);
  }

  /** @see IMailroomTable.grantCancel */
  grantCancel(grantee: IGrantable): void {
    grantCancel(this, grantee);
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

  /** @see IMailroomTable.grantDomain */
  grantDomain(grantee: IGrantable, keys: readonly string[]): void {
    grantDomain(this, grantee, keys);
  }

  /** Lets a function publish: claim and mark outbox rows, and keep the pointers to DEAD ones. It cannot delete one, but an update also adds a row. */
  grantRelay(grantee: IGrantable): void {
    this.grantRows(grantee, ['UpdateItem', 'PartiQLUpdate'], [OUTBOX_KEYS]);
    this.grantRows(grantee, ['PutItem', 'DeleteItem'], [DEAD_KEYS]);
  }

  /** Lets the stream relay raise the number of shards that the sweep reads, and leave it a minute in one of them. */
  grantHigherShards(grantee: IGrantable): void {
    this.grantRows(grantee, ['UpdateItem'], [SWEEP_STATE_KEY.PK]);
    this.grantRows(grantee, ['PutItem'], [UNSETTLED_KEYS]);
  }

  /**
   * Lets a function find events to publish: read the outbox and its pointers, and keep the list of unsettled minutes and the
   * sweep's state.
   */
  grantSweep(grantee: IGrantable): void {
    this.grantRows(grantee, ['Query'], [OUTBOX_KEYS, DEAD_KEYS, UNSETTLED_KEYS]);
    this.grantRows(grantee, ['PutItem', 'DeleteItem'], [UNSETTLED_KEYS]);
    this.grantRows(grantee, ['GetItem', 'UpdateItem'], [SWEEP_STATE_KEY.PK]);
    grantTo(this, { grantee, actions: ['dynamodb:DescribeTable'], resourceArns: [this.tableArn] });
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

  /** @see IMailroomTable.grantInbox */
  grantInbox(grantee: IGrantable, consumer: string): void {
    grantInbox(this, grantee, consumer);
  }

  private grantRows(grantee: IGrantable, actions: readonly string[], keys: readonly string[]): void {
    grantRows(this, grantee, actions, keys);
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
