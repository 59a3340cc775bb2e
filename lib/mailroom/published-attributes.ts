import { type Duration, Fn } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { StringListParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';
import {
  AUDITORS_SEPARATOR,
  attributesName,
  encodeAttributes,
} from '../../lambdas/runtime/operations/bus-directory.ts';
import type { MailroomTable } from './mailroom-table.ts';
import type { OutboxAudit } from './outbox-audit.ts';
import type { OutboxRelay } from './outbox-relay.ts';
import { noRole } from './role-arns.ts';

/** The parts of a Mailroom that its attributes name. */
interface Attached extends Construct {
  readonly table: MailroomTable;
  readonly bus: IEventBus;
  readonly relay: OutboxRelay;
  readonly encryptionKey: IKey | undefined;
  readonly audit: OutboxAudit | undefined;
  /** The ARNs of audits of the Mailrooms on a shared bus, which may read its consumers' queues, too. @internal */
  readonly _auditors: string[] | undefined;
}

/** Writes what consumers and producers of other apps need to attach to a Mailroom: see `Mailroom.fromTableName`. */
export function publishAttributes(
  mailroom: Attached,
  { shards, streamLease }: { readonly shards: number; readonly streamLease: Duration },
): void {
  const { table, bus, relay, encryptionKey, audit, _auditors } = mailroom;
  const own = audit?.function.role?.roleArn;
  const listed = _auditors && Fn.join(AUDITORS_SEPARATOR, _auditors);
  const auditors = [own, listed].filter((arns) => arns !== undefined);
  new StringListParameter(mailroom, 'Attributes', {
    parameterName: attributesName(table.tableName),
    description: 'Consumers and producers of other apps read it when they are deployed.',
    simpleName: false,
    stringListValue: encodeAttributes({
      bus: bus.eventBusName,
      shards: String(shards),
      bornLeaseMs: String(streamLease.toMilliseconds()),
      sweepRole: relay.sweepFunction.role?.roleArn ?? '',
      key: encryptionKey?.keyArn ?? table.tableArn,
      auditors: Fn.join(AUDITORS_SEPARATOR, auditors.length > 0 ? auditors : [noRole(mailroom)]),
    }),
  });
}
