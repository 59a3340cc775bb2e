import { ArnFormat, type Duration, Lazy, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { CfnArchive, type CfnEventBus, EventBus } from 'aws-cdk-lib/aws-events';
import {
  AnyPrincipal,
  Effect,
  Grant,
  type IGrantable,
  PolicyDocument,
  PolicyStatement,
} from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Construct } from 'constructs';
import { physicalName } from './physical-name.ts';

/** Properties of a {@link MailroomBus}. */
export interface MailroomBusProps {
  /**
   * What happens to the bus and its archive when their stack is deleted. A retained bus does not block a new deployment: that
   * creates another bus.
   *
   * @default RETAIN_ON_UPDATE_OR_DELETE
   */
  readonly removalPolicy?: RemovalPolicy;
  /** How long the archive keeps every event of the bus for replays, in whole days. @default no archive */
  readonly archive?: Duration;
  /** Encrypts the bus and its archive. The key's policy must let EventBridge use it. @default a key that AWS owns */
  readonly encryptionKey?: IKey;
}

/** No service can have this name: an empty list would be left out of the policy, and its condition with it. */
const NO_SOURCE = '(none)';

/**
 * The bus: every published event passes it once per publish, and every consumer has a rule on it.
 *
 * Its policy denies `PutEvents` to every principal of the account, administrators included, except those of
 * {@link MailroomBus.grantPublish} and AWS services (which replay the archive).
 *
 * @example
 * ```ts
 * const bus = new MailroomBus(this, 'Bus');
 * bus.grantPublish(publisher, () => ['orders']);
 * ```
 */
export class MailroomBus extends EventBus {
  private readonly publishers = new Set<string>();

  constructor(scope: Construct, id: string, props: MailroomBusProps = {}) {
    // A bus must have a name, and the one that the CDK would give is the same in every stage of an account.
    const eventBusName = `${physicalName(scope, 200)}-${id}`;
    super(scope, id, {
      eventBusName,
      description: 'Events that a Mailroom outbox has published.',
    });
    const removalPolicy = props.removalPolicy ?? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE;
    this.applyRemovalPolicy(removalPolicy);
    const bus = this.node.defaultChild as CfnEventBus;
    // Part of the bus: a policy of its own would leave the bus open until it is deployed.
    bus.policy = this.onlyPublishers(eventBusName);
    bus.kmsKeyIdentifier = props.encryptionKey?.keyArn;
    if (props.archive === undefined) return;
    // Without a pattern it takes every event; the construct of a higher level demands one.
    const archive = new CfnArchive(this, 'Archive', {
      sourceArn: this.eventBusArn,
      description: 'Every event of the bus, to be replayed to a consumer that has not seen it.',
      retentionDays: props.archive.toDays(),
      kmsKeyIdentifier: props.encryptionKey?.keyArn,
    });
    archive.applyRemovalPolicy(removalPolicy);
  }

  /**
   * Lets it put events of these sources on this bus, and on no other. A call that holds one event of another source is denied
   * as a whole. The bus's policy names it, so a role of another stack that depends on this one must be imported:
   * `Role.fromRoleName`.
   *
   * @param sources - read at synth, when every producer is known
   */
  grantPublish(grantee: IGrantable, sources: () => readonly string[]): Grant {
    const { principalJson } = grantee.grantPrincipal.policyFragment;
    for (const arn of principalJson.AWS ?? []) this.publishers.add(arn);
    return Grant.addToPrincipal({
      grantee,
      actions: ['events:PutEvents'],
      resourceArns: [this.eventBusArn],
      conditions: {
        // A call has a source for each of its entries (service authorization reference, EventBridge: events:source is an
        // ArrayOfString), and "all values" is also true of none: a call must name its sources.
        'ForAllValues:StringEquals': {
          'events:source': Lazy.list({
            produce: () => (sources().length > 0 ? [...sources()] : [NO_SOURCE]),
          }),
        },
        Null: { 'events:source': 'false' },
      },
    });
  }

  private onlyPublishers(eventBusName: string): PolicyDocument {
    const resource = { service: 'events', resource: 'event-bus', resourceName: eventBusName };
    return new PolicyDocument({
      statements: [
        new PolicyStatement({
          sid: 'OnlyPublishersPut',
          effect: Effect.DENY,
          principals: [new AnyPrincipal()],
          actions: ['events:PutEvents'],
          // The bus cannot refer to itself.
          resources: [Stack.of(this).formatArn({ ...resource, arnFormat: ArnFormat.SLASH_RESOURCE_NAME })],
          conditions: {
            ArnNotEquals: { 'aws:PrincipalArn': Lazy.list({ produce: () => [...this.publishers] }) },
            Bool: { 'aws:PrincipalIsAWSService': 'false' },
          },
        }),
      ],
    });
  }
}
