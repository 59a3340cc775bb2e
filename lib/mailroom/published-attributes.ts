import type { Duration } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { StringListParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';
import { attributesName, encodeAttributes } from '../../lambdas/runtime/operations/bus-directory.ts';
import type { MailroomTable } from './mailroom-table.ts';
import type { OutboxRelay } from './outbox-relay.ts';

/** The parts of a Mailroom that its attributes name. */
interface Attached extends Construct {
  readonly table: MailroomTable;
  readonly bus: IEventBus;
  readonly relay: OutboxRelay;
  readonly encryptionKey: IKey | undefined;
}

/** Writes what consumers and producers of other apps need to attach to a Mailroom: see `Mailroom.fromTableName`. */
export function publishAttributes(
  mailroom: Attached,
  { shards, bornLease }: { readonly shards: number; readonly bornLease: Duration },
): void {
  const { table, bus, relay, encryptionKey } = mailroom;
  new StringListParameter(mailroom, 'Attributes', {
    parameterName: attributesName(table.tableName),
    description: 'Consumers and producers of other apps read it when they are deployed.',
    simpleName: false,
    stringListValue: encodeAttributes({
      bus: bus.eventBusName,
      shards: String(shards),
      bornLeaseMs: String(bornLease.toMilliseconds()),
      sweepRole: relay.sweepFunction.role?.roleArn ?? '',
      key: encryptionKey?.keyArn ?? table.tableArn,
    }),
  });
}
