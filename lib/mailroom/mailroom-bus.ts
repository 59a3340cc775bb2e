import { ArnFormat, type Duration, Lazy, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { CfnArchive, type CfnEventBus, EventBus } from 'aws-cdk-lib/aws-events';
import {
  AnyPrincipal,
  Effect,
  Grant,
  type IGrantable,
  type IRole,
  PolicyDocument,
  PolicyStatement,
  Role,
} from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { physicalName } from '../functions/physical-name.ts';
import { PUBLISHER_TAG, tag } from './tags.ts';

/** Properties of a {@link MailroomBus}. */
export interface MailroomBusProps {
  /**
   * The removal policy of the bus and its archive. A retained bus does not block a new deployment, which creates another bus.
   *
   * @default RETAIN_ON_UPDATE_OR_DELETE
   */
  readonly removalPolicy?: RemovalPolicy;
  /** Archives every event of the bus for replays, for this many whole days. @default no archive */
  readonly archive?: Duration;
  /** Encrypts the bus and its archive. The key's policy must let EventBridge use it. @default a key that AWS owns */
  readonly encryptionKey?: IKey;
}

/** Not a valid service name. IAM would drop an empty list, and the condition with it. */
const NO_SOURCE = '(none)';

/** The bus on which a role publishes at once: it has one tag. */
const BUS_OF = new WeakMap<IRole, MailroomBus>();

/** The bus on which a role publishes at once; `undefined` if it leaves publishing to the relay. */
export function busOfPublisher(role: IRole): MailroomBus | undefined {
  return BUS_OF.get(role);
}

/**
 * The event bus. The relay puts events on it, and every consumer has a rule on it.
 *
 * Its policy denies `PutEvents` to every principal of the account, administrators included, except those of
 * {@link MailroomBus.grantPublish} and {@link MailroomBus.grantPublishAtOnce}, and AWS services (which replay the archive).
 *
 * @example
 * ```ts
 * const bus = new MailroomBus(this, 'Bus');
 * bus.grantPublish(publisher, () => ['orders']);
 * ```
 */
export class MailroomBus extends EventBus {
  private readonly publishers = new Set<string>();
  private readonly onlyPublishers: PolicyStatement;
  /** The name itself, which the policy needs: a bus cannot reference its own name. */
  private readonly ownName: string;

  constructor(scope: Construct, id: string, props: MailroomBusProps = {}) {
    // A bus needs a name, and the CDK's default name is the same in every stage of an account.
    const eventBusName = `${physicalName(scope, 200)}-${id}`;
    super(scope, id, {
      eventBusName,
      description: 'Events published from a Mailroom outbox.',
    });
    const removalPolicy = props.removalPolicy ?? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE;
    this.applyRemovalPolicy(removalPolicy);
    const bus = this.node.defaultChild as CfnEventBus;
    // Part of the bus resource: a separate policy would leave the bus open until it is deployed.
    this.ownName = eventBusName;
    this.onlyPublishers = this.denyOthers();
    bus.policy = new PolicyDocument({ statements: [this.onlyPublishers] });
    bus.kmsKeyIdentifier = props.encryptionKey?.keyArn;
    if (props.archive === undefined) return;
    // Without a pattern it archives every event; the L2 construct requires one.
    const archive = new CfnArchive(this, 'Archive', {
      sourceArn: this.eventBusArn,
      description: 'Every event of the bus, for replays to new consumers.',
      retentionDays: props.archive.toDays(),
      kmsKeyIdentifier: props.encryptionKey?.keyArn,
    });
    archive.applyRemovalPolicy(removalPolicy);
  }

  /**
   * Lets a principal put events of these sources on this bus, and on no other. A call is denied as a whole if one of its events
   * has another source. The bus's policy names the principal, so import a role of another stack that depends on this one:
   * `Role.fromRoleName`.
   *
   * @param sources - called at synth, when every producer is known
   */
  grantPublish(grantee: IGrantable, sources: () => readonly string[]): Grant {
    const { principalJson } = grantee.grantPrincipal.policyFragment;
    for (const arn of principalJson.AWS ?? []) this.publishers.add(arn);
    return this.allow(grantee, sources);
  }

  /** Returns the reasons why the bus could not recognize the function's role by its tag, one sentence each. */
  publisherProblems({ role }: LambdaFunction): string[] {
    if (role === undefined || !Role.isRole(role)) {
      return [
        'publishAtOnce needs a role that this app creates, because the bus recognizes it by a tag. Let the function create its role, or ' +
          'leave publishing to the relay.',
      ];
    }
    const other = BUS_OF.get(role);
    return other === undefined || other === this
      ? []
      : [`publishAtOnce is already used for ${other.node.path}: a role can publish at once on one bus only.`];
  }

  /**
   * Lets a function of any stack put events of these sources on this bus, and on no other. The bus's policy recognizes its role by a
   * tag, because it cannot name a role of a stack that is deployed after its own.
   *
   * @param sources - called at synth
   */
  grantPublishAtOnce(producer: LambdaFunction, sources: () => readonly string[]): Grant {
    if (producer.role) {
      BUS_OF.set(producer.role, this);
      tag(producer.role, { [PUBLISHER_TAG]: this.eventBusName });
    }
    this.onlyPublishers.addCondition('StringNotEquals', {
      [`aws:PrincipalTag/${PUBLISHER_TAG}`]: this.ownName,
    });
    return this.allow(producer, sources);
  }

  private allow(grantee: IGrantable, sources: () => readonly string[]): Grant {
    return Grant.addToPrincipal({
      grantee,
      actions: ['events:PutEvents'],
      resourceArns: [this.eventBusArn],
      conditions: {
        // A call has one source per entry (service authorization reference, EventBridge: events:source is an ArrayOfString). "All
        // values" is also true of an empty list, so the Null condition requires at least one source.
        'ForAllValues:StringEquals': {
          'events:source': Lazy.list({
            produce: () => (sources().length > 0 ? [...sources()] : [NO_SOURCE]),
          }),
        },
        Null: { 'events:source': 'false' },
      },
    });
  }

  private denyOthers(): PolicyStatement {
    const resource = { service: 'events', resource: 'event-bus', resourceName: this.ownName };
    return new PolicyStatement({
      sid: 'OnlyPublishersPut',
      effect: Effect.DENY,
      principals: [new AnyPrincipal()],
      actions: ['events:PutEvents'],
      // A resource cannot reference itself.
      resources: [Stack.of(this).formatArn({ ...resource, arnFormat: ArnFormat.SLASH_RESOURCE_NAME })],
      conditions: {
        ArnNotEquals: { 'aws:PrincipalArn': Lazy.list({ produce: () => [...this.publishers] }) },
        Bool: { 'aws:PrincipalIsAWSService': 'false' },
      },
    });
  }
}
