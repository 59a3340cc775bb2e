import { ArnFormat, Duration, Fn, Stack, Token } from 'aws-cdk-lib';
import { EventBus, type IEventBus } from 'aws-cdk-lib/aws-events';
import { ArnPrincipal, type IGrantable } from 'aws-cdk-lib/aws-iam';
import { type IKey, Key } from 'aws-cdk-lib/aws-kms';
import { ParameterValueType, StringListParameter, StringParameter } from 'aws-cdk-lib/aws-ssm';
import { Construct } from 'constructs';
import { BORN_LEASE_MS } from '../lambdas/runtime/base/patience.ts';
import {
  AUDITORS_SEPARATOR,
  attributesName,
  decodeAttributes,
  type MailroomAttributes,
} from '../lambdas/runtime/operations/bus-directory.ts';
import { servicePath } from '../lambdas/runtime/operations/directory.ts';
import { refuse, unless } from './checks/refusal.ts';
import { auditorsNamed } from './mailroom/bus-auditors.ts';
import { DeclaredEvents } from './mailroom/declared-events.ts';
import { MailroomBase, type QueueWatchers } from './mailroom/mailroom-base.ts';
import {
  grantCancel,
  grantDomain,
  grantInbox,
  grantOutbox,
  type IMailroomTable,
} from './mailroom/row-grants.ts';

/** Valid values, for the checks at synth; at deployment, the attributes replace them. */
const PLACEHOLDERS = { shards: 1, streamLease: Duration.millis(BORN_LEASE_MS) };

/** A Mailroom of another app, made by `Mailroom.fromTableName`. */
export class ImportedMailroom extends MailroomBase {
  readonly table: IMailroomTable;
  readonly bus: IEventBus;
  /** Unknown at synth: these belong to the app of the Mailroom. */
  readonly archive = undefined;
  readonly encryptionKey = undefined;
  readonly operators = undefined;
  readonly tracing = undefined;
  readonly heartbeatEvery = undefined;
  readonly _declared = new DeclaredEvents([]);
  readonly _shared = true;
  readonly _watchers: QueueWatchers;
  readonly _environment: Readonly<Record<string, string>>;
  readonly _payloads = undefined;
  protected readonly outbox = PLACEHOLDERS;

  constructor(scope: Construct, id: string, tableName: string) {
    super(scope, id);
    refuse(`The imported Mailroom ${this.node.path}`, tableNameProblems(tableName));
    const { bus, shards, bornLeaseMs, sweepRole, key, auditors } = attributesOf(this, tableName);
    this.table = new ImportedTable(this, 'Table', tableName, key);
    this.bus = EventBus.fromEventBusName(this, 'Bus', bus);
    this._watchers = {
      sweep: new ArnPrincipal(sweepRole),
      others: (policyOwner) => auditorsNamed(policyOwner, Fn.split(AUDITORS_SEPARATOR, auditors)),
    };
    this._environment = { MAILROOM_SHARDS: shards, MAILROOM_BORN_LEASE_MS: bornLeaseMs };
  }

  /** The deployment fails, before it changes anything, if the relay does not publish the service. */
  protected declareService(service: string): void {
    StringParameter.valueForStringParameter(this, servicePath(this.table.tableName, service));
  }

  protected publishAtOnceProblems(): string[] {
    return [
      `publishAtOnce needs rights of the relay, which belongs to the app of the Mailroom. Create the producer there, or leave publishing to the relay.`,
    ];
  }
}

function attributesOf(scope: Construct, tableName: string): MailroomAttributes {
  const name = attributesName(tableName);
  const list = StringListParameter.valueForTypedListParameter(scope, name, ParameterValueType.STRING);
  return decodeAttributes((index) => Fn.select(index, list));
}

/** AWS's rule for the names of tables (DynamoDB API reference, CreateTable). */
const TABLE_NAME = /^[\w.-]{3,255}$/;

function tableNameProblems(tableName: string): string[] {
  if (Token.isUnresolved(tableName))
    return [
      'tableName is a token, but it is part of the names of parameters, which must be known at synth. Pass the name itself, as in the output or ' +
        'context of the app that creates the Mailroom; within one app, pass the Mailroom.',
    ];
  return unless(
    TABLE_NAME.test(tableName),
    `tableName is "${tableName}", but must be 3 to 255 letters, digits, ".", "_" or "-", and not an ARN. \`npx cdk-mailroom status\` shows it.`,
  );
}

/** The table of an imported Mailroom. Its grants are those of the table's own app. */
class ImportedTable extends Construct implements IMailroomTable {
  readonly tableName: string;
  readonly tableArn: string;
  /** Always granted: the attribute names no key if AWS-owned keys encrypt the table. */
  readonly _key: IKey;

  constructor(scope: Construct, id: string, tableName: string, keyArn: string) {
    super(scope, id);
    this.tableName = tableName;
    this.tableArn = Stack.of(this).formatArn({
      service: 'dynamodb',
      resource: 'table',
      resourceName: tableName,
      arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
    });
    this._key = Key.fromKeyArn(this, 'Key', keyArn);
  }

  grantOutbox(grantee: IGrantable): void {
    grantOutbox(this, grantee);
  }

  grantCancel(grantee: IGrantable): void {
    grantCancel(this, grantee);
  }

  grantDomain(grantee: IGrantable, keys: readonly string[]): void {
    grantDomain(this, grantee, keys);
  }

  grantInbox(grantee: IGrantable, consumer: string): void {
    grantInbox(this, grantee, consumer);
  }
}
