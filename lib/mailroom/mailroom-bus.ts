import { ArnFormat, type Duration, Lazy, RemovalPolicy, Stack } from 'aws-cdk-lib';
import {
  CfnArchive,
  type CfnEventBus,
  CfnEventBusPolicy,
  EventBus,
  type IEventBus,
} from 'aws-cdk-lib/aws-events';
import {
  AccountPrincipal,
  AnyPrincipal,
  Effect,
  type Grant,
  type IGrantable,
  type IRole,
  PolicyDocument,
  PolicyStatement,
  Role,
} from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { StringParameter } from 'aws-cdk-lib/aws-ssm';
import { Construct } from 'constructs';
import { sharedBusName } from '../../lambdas/runtime/operations/bus-directory.ts';
import { grantTo } from '../checks/granted.ts';
import { refuse, unless } from '../checks/refusal.ts';
import { physicalName } from '../functions/physical-name.ts';
import {
  acceptProblems,
  type BusAcceptOptions,
  BusForward,
  type BusForwardOptions,
  busNameProblems,
} from './bus-forward.ts';
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
  /** A fixed name, by which other apps import the bus. @default a name that is derived from the stack and its id */
  readonly eventBusName?: string;
  /**
   * Lets Mailrooms of other stacks and apps join it. The bus that a `Mailroom` makes for itself is not shared.
   *
   * @default true
   */
  readonly shared?: boolean;
}

/** The longest id of a statement (EventBridge API reference, PutPermission). */
export const STATEMENT_ID_MAX = 64;

/** Not a valid service name. IAM would drop an empty list, and the condition with it. */
export const NO_SOURCE = '(none)';

/** A Mailroom, as a producer that publishes at once knows it. */
interface OnBus extends Construct {
  readonly bus: IEventBus;
}

/** The Mailroom for which a role publishes at once: each of its tags has one value. */
const MAILROOM_OF = new WeakMap<IRole, OnBus>();

/** The bus on which a role publishes at once; `undefined` if it leaves publishing to the relay. */
export function busOfPublisher(role: IRole): IEventBus | undefined {
  return MAILROOM_OF.get(role)?.bus;
}

/**
 * An event bus. The relays of its Mailrooms put events on it, and every consumer has a rule on it. It is a bus of today's EventBridge
 * (`AWS::Events::EventBus`), which its documentation calls classic beside `AWS::EventsV2`.
 *
 * Its policy denies `PutEvents` to every principal of the account, administrators included, except those of
 * {@link MailroomBus.grantPublish}, the roles of Mailrooms that join it and producers that publish at once, and AWS services (which replay
 * the archive). In other apps, import it with `EventBus.fromEventBusName` or `fromEventBusArn`.
 *
 * @throws `BAD_SETTINGS` if `eventBusName` is invalid
 *
 * @example
 * ```ts
 * const bus = new MailroomBus(this, 'Bus', { eventBusName: 'shop' });
 * new Mailroom(this, 'Orders', { bus });
 *
 * // In the app of another service:
 * new Mailroom(this, 'Payments', { bus: MailroomBus.fromEventBusName(this, 'Bus', 'shop') });
 * ```
 */
export class MailroomBus extends EventBus {
  /** Mailrooms of other stacks and apps can join it. */
  readonly shared: boolean;
  /** The retention of its archive; absent without one. */
  readonly archiveRetention: Duration | undefined;
  private readonly publishers = new Set<string>();
  private readonly onlyPublishers: PolicyStatement;
  private readonly removalPolicy: RemovalPolicy;
  /** The name itself, which the policy needs: a bus cannot reference its own name. */
  private readonly ownName: string;

  constructor(scope: Construct, id: string, props: MailroomBusProps = {}) {
    refuse(`The bus ${scope.node.path}/${id}`, busNameProblems(props.eventBusName));
    // A bus needs a name, and the CDK's default name is the same in every stage of an account.
    const eventBusName = props.eventBusName ?? `${physicalName(scope, 200)}-${id}`;
    super(scope, id, {
      eventBusName,
      description: 'Events published from a Mailroom outbox.',
    });
    this.removalPolicy = props.removalPolicy ?? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE;
    this.applyRemovalPolicy(this.removalPolicy);
    this.shared = props.shared ?? true;
    this.archiveRetention = props.archive;
    const bus = this.node.defaultChild as CfnEventBus;
    // Part of the bus resource: a separate policy would leave the bus open until it is deployed.
    this.ownName = eventBusName;
    this.onlyPublishers = this.denyOthers();
    bus.policy = new PolicyDocument({ statements: [this.onlyPublishers] });
    bus.kmsKeyIdentifier = props.encryptionKey?.keyArn;
    if (this.shared) this.share();
    if (props.archive === undefined) return;
    // Without a pattern it archives every event; the L2 construct requires one.
    const archive = new CfnArchive(this, 'Archive', {
      sourceArn: this.eventBusArn,
      description: 'Every event of the bus, for replays to new consumers.',
      retentionDays: props.archive.toDays(),
      kmsKeyIdentifier: props.encryptionKey?.keyArn,
    });
    archive.applyRemovalPolicy(this.removalPolicy);
  }

  private share(): void {
    this._admitTagged();
    new StringParameter(this, 'Shared', {
      parameterName: sharedBusName(this.eventBusName),
      description: 'Mailrooms of other apps look it up: a bus without it would refuse their relays.',
      stringValue: Stack.of(this).stackName,
      simpleName: false,
    });
  }

  /**
   * Lets a principal put events of these sources on this bus, and on no other. A call is denied as a whole if one of its events
   * has another source. The bus's policy names the principal, so import a role of another stack that depends on this one:
   * `Role.fromRoleName`. A shared bus recognizes a role that this app creates by a tag.
   *
   * @param sources - called at synth, when every producer is known
   */
  grantPublish(grantee: IGrantable, sources: () => readonly string[]): Grant {
    const { grantPrincipal } = grantee;
    const { principalJson } = grantPrincipal.policyFragment;
    // The statements of Mailrooms of other apps are beside those of the bus itself, so these must not change with each role.
    if (this.shared && Role.isRole(grantPrincipal)) tag(grantPrincipal, { [PUBLISHER_TAG]: this.ownName });
    else for (const arn of principalJson.AWS ?? []) this.publishers.add(arn);
    return allowPublish(this, grantee, sources);
  }

  /**
   * Forwards events of one service to a bus of another account or region, or to another bus of this one: a rule, its role and a
   * dead-letter queue. The events keep their ids, so inboxes there absorb duplicates whatever their path. A bus in another account must
   * accept them: {@link MailroomBus.acceptFrom}. EventBridge does not forward an event a second time.
   *
   * @throws `BAD_SETTINGS` if the events are not of that service, or if forwards of this app would form a chain or a loop
   *
   * @example
   * ```ts
   * const ireland = EventBus.fromEventBusArn(this, 'Ireland', 'arn:aws:events:eu-west-1:111122223333:event-bus/shop');
   * bus.forwardTo(ireland, { from: 'orders', events: [OrderPlaced] });
   * ```
   */
  forwardTo(target: IEventBus, { from, events }: BusForwardOptions): BusForward {
    const { removalPolicy } = this;
    const id = `To${target.node.id}-${from}`;
    refuse(
      `The bus ${this.node.path}`,
      unless(
        this.node.tryFindChild(id) === undefined,
        `It already forwards events of "${from}" to ${target.node.path}. Pass all of their types in one call.`,
      ),
    );
    return new BusForward(this, id, {
      bus: this,
      target,
      from,
      events,
      removalPolicy,
    });
  }

  /**
   * Accepts events of one service that a bus of another account forwards, and no others.
   *
   * @throws `BAD_SETTINGS` if `account` is not an account's number, or if the events are not of that service
   *
   * @example
   * ```ts
   * bus.acceptFrom({ account: '111122223333', from: 'orders', events: [OrderPlaced] });
   * ```
   */
  acceptFrom({ account, from, events }: BusAcceptOptions): void {
    refuse(`The bus ${this.node.path}`, acceptProblems(this, { account, from, events }));
    const key = `Accept-${account}-${from}`;
    refuse(
      `The bus ${this.node.path}`,
      unless(
        this.node.tryFindChild(key) === undefined,
        `It already accepts events of "${from}" from ${account}. Pass all of their types in one call.`,
      ),
    );
    this._admitTagged();
    const accept = new Construct(this, key);
    const statementId = physicalName(accept, STATEMENT_ID_MAX);
    const statement = new PolicyStatement({
      sid: statementId,
      principals: [new AccountPrincipal(account)],
      actions: ['events:PutEvents'],
      resources: [this.eventBusArn],
      conditions: {
        'ForAllValues:StringEquals': { 'events:source': [from] },
        StringEquals: { 'events:detail-type': events.map(({ type }) => type) },
        Null: { 'events:source': 'false' },
      },
    });
    // Beside the statements of Mailrooms of other apps, which a change of the bus's own policy could replace.
    new CfnEventBusPolicy(accept, 'Policy', {
      eventBusName: this.eventBusName,
      statementId,
      statement: statement.toStatementJson(),
    });
  }

  /** Exempts roles with the tag of this bus from the deny: its policy cannot name roles that are deployed after it. @internal */
  _admitTagged(): void {
    this.onlyPublishers.addCondition('StringNotEquals', {
      [`aws:PrincipalTag/${PUBLISHER_TAG}`]: this.ownName,
    });
  }

  private ownArn(): string {
    const resource = { service: 'events', resource: 'event-bus', resourceName: this.ownName };
    // A resource cannot reference itself.
    return Stack.of(this).formatArn({ ...resource, arnFormat: ArnFormat.SLASH_RESOURCE_NAME });
  }

  private denyOthers(): PolicyStatement {
    // A shared bus may have no publisher in its own stack, and IAM accepts no empty list.
    const nobody = Stack.of(this).formatArn({
      service: 'iam',
      region: '',
      resource: 'role',
      resourceName: 'none',
    });
    return new PolicyStatement({
      sid: 'OnlyPublishersPut',
      effect: Effect.DENY,
      principals: [new AnyPrincipal()],
      actions: ['events:PutEvents'],
      resources: [this.ownArn()],
      conditions: {
        ArnNotEquals: {
          'aws:PrincipalArn': Lazy.list({
            produce: () => (this.publishers.size > 0 ? [...this.publishers] : [nobody]),
          }),
        },
        Bool: { 'aws:PrincipalIsAWSService': 'false' },
      },
    });
  }
}

/**
 * Lets a relay put events of these sources on its bus, and on no other.
 *
 * @param sources - called at synth, when every producer is known
 */
export function publishOn(bus: IEventBus, relay: LambdaFunction, sources: () => readonly string[]): void {
  if (bus instanceof MailroomBus && Stack.of(bus) === Stack.of(relay)) {
    bus.grantPublish(relay, sources);
    return;
  }
  // The bus of another stack is deployed before this role, so its policy knows the role by a tag.
  if (relay.role) tag(relay.role, { [PUBLISHER_TAG]: bus.eventBusName });
  if (bus instanceof MailroomBus) bus._admitTagged();
  allowPublish(bus, relay, sources);
}

/** Returns the reasons why the bus of a Mailroom could not recognize the function's role by its tags, one sentence each. */
export function publisherProblems(mailroom: OnBus, { role }: LambdaFunction): string[] {
  if (role === undefined || !Role.isRole(role)) {
    return [
      'publishAtOnce needs a role that this app creates, because the bus recognizes it by a tag. Let the function create its role, or ' +
        'leave publishing to the relay.',
    ];
  }
  const other = MAILROOM_OF.get(role);
  return other === undefined || other === mailroom
    ? []
    : [
        `publishAtOnce is already used for ${other.node.path}: a role can publish at once for one Mailroom only.`,
      ];
}

/**
 * Lets a function of any stack put events of these sources on the bus of a Mailroom, and on no other. The bus's policy recognizes its role by a
 * tag, because it cannot name a role of a stack that is deployed after its own.
 *
 * @param sources - called at synth
 */
export function publishAtOnceOn(
  mailroom: OnBus,
  producer: LambdaFunction,
  sources: () => readonly string[],
): void {
  const { bus } = mailroom;
  if (producer.role) {
    MAILROOM_OF.set(producer.role, mailroom);
    tag(producer.role, { [PUBLISHER_TAG]: bus.eventBusName });
  }
  if (bus instanceof MailroomBus) bus._admitTagged();
  allowPublish(bus, producer, sources);
}

function allowPublish(bus: IEventBus, grantee: IGrantable, sources: () => readonly string[]): Grant {
  return grantTo(bus, {
    grantee,
    actions: ['events:PutEvents'],
    resourceArns: [bus.eventBusArn],
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
