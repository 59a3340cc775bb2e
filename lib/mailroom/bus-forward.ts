import { Annotations, type RemovalPolicy, Token } from 'aws-cdk-lib';
import { type IEventBus, Rule } from 'aws-cdk-lib/aws-events';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct, type IConstruct } from 'constructs';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { encodeRulePattern } from '../../lambdas/runtime/bus/rule-pattern.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { serviceNameProblems } from '../checks/names.ts';
import { refuse, refuseNames, unless } from '../checks/refusal.ts';
import { QUEUE_RETENTION_MAX } from '../checks/retentions.ts';
import { acknowledgeLastStop } from '../functions/acknowledged-warnings.ts';
import { identityOf } from './bus-identity.ts';
import { letEventsUse, queueEncryption } from './encryption.ts';
import { onlySources } from './publish-grant.ts';
import { DEAD_LETTERS_OF_NONE, denySending, fixedRuleName, ruleSends } from './queue-senders.ts';
import { fixedRoleName } from './role-arns.ts';
import { FORWARD_TAG, PUBLISHER_TAG, tag } from './tags.ts';

/** The events that a bus forwards. */
export interface BusForwardOptions {
  /** The service that publishes them: their `source`. */
  readonly from: string;
  /** The event types that consumers on the other bus subscribe to; no others are forwarded. */
  readonly events: readonly EventRef[];
  /** The name of the forward's role, by which the other bus accepts it. @default a name that is derived from the stack, the path and the region */
  readonly roleName?: string;
}

/** Properties of a {@link BusForward}. */
export interface BusForwardProps extends BusForwardOptions {
  /** The bus on which the service publishes them. */
  readonly bus: IEventBus;
  /** The bus that receives them. */
  readonly target: IEventBus;
  /** The removal policy of the dead-letter queue. */
  readonly removalPolicy: RemovalPolicy;
  /** Encrypts the dead-letter queue; whose policy lets EventBridge use it. @default SQS's own key */
  readonly encryptionKey?: IKey | undefined;
}

/** A forward in this app. */
interface KnownForward extends BusForwardOptions {
  readonly path: string;
  readonly fromBus: string;
  readonly toBus: string;
}

/** The forwards of each app, by the root of its tree. */
const FORWARDS = new WeakMap<IConstruct, KnownForward[]>();

const NAMES: PropNames<BusForwardProps> = {
  bus: 'required',
  target: 'required',
  from: 'required',
  events: 'required',
  removalPolicy: 'required',
  roleName: 'optional',
  encryptionKey: 'optional',
};

/** The names of {@link BusForwardOptions}. */
export const FORWARD_NAMES: PropNames<BusForwardOptions> = {
  from: 'required',
  events: 'required',
  roleName: 'optional',
};

/** A forward of events to another bus, made by `MailroomBus.forwardTo`: one rule, its role and its dead-letter queue. */
export class BusForward extends Construct {
  readonly rule: Rule;
  /** The name of its role, by which the other bus accepts it: {@link MailroomBus.acceptFrom}. */
  readonly roleName: string;
  /** Receives events that EventBridge could not deliver to the other bus for a day, or had no permission to deliver. Give it an alarm. */
  readonly deadLetterQueue: Queue;

  constructor(scope: Construct, id: string, props: BusForwardProps) {
    super(scope, id);
    refuseNames(`The forward ${this.node.path}`, props, NAMES);
    const { bus, target, from, events, removalPolicy, encryptionKey } = props;
    const forward = {
      path: this.node.path,
      fromBus: identityOf(bus),
      toBus: identityOf(target),
      from,
      events,
    };
    const known = FORWARDS.get(this.node.root) ?? [];
    refuse(`The forward ${this.node.path}`, [
      ...forwardedEventsProblems(from, events),
      ...pathProblems(forward, known),
    ]);
    FORWARDS.set(this.node.root, [...known, forward]);
    this.deadLetterQueue = new Queue(this, 'DeadLetters', {
      ...queueEncryption(encryptionKey),
      ...DEAD_LETTERS_OF_NONE,
      enforceSSL: true,
      retentionPeriod: QUEUE_RETENTION_MAX,
      removalPolicy,
    });
    if (encryptionKey) letEventsUse(this, encryptionKey);
    acknowledgeLastStop(this.deadLetterQueue, 'the dead-letter queue of a forward');
    this.roleName = props.roleName ?? fixedRoleName(this);
    const role = new Role(this, 'Role', {
      roleName: this.roleName,
      assumedBy: new ServicePrincipal('events.amazonaws.com'),
    });
    // A shared bus denies every role without the first, and a Mailroom there, every role that is neither its own nor has the second.
    tag(role, { [PUBLISHER_TAG]: target.eventBusName, [FORWARD_TAG]: target.eventBusName });
    role.addToPolicy(
      new PolicyStatement({
        actions: ['events:PutEvents'],
        resources: [target.eventBusArn],
        conditions: onlySources(() => [from]),
      }),
    );
    const ruleName = fixedRuleName(this, 'Forward', bus);
    this.rule = new Rule(this, 'Rule', {
      ruleName,
      description: `Forwards events of ${from} to another bus.`,
      eventBus: bus,
      eventPattern: encodeRulePattern(events),
    });
    // The role's policy is a resource of its own: a rule without it would send its first events to the dead-letter queue.
    this.rule.node.addDependency(role);
    this.rule.addTarget({
      bind: () => ({
        arn: target.eventBusArn,
        role,
        deadLetterConfig: { arn: this.deadLetterQueue.queueArn },
      }),
    });
    ruleSends(
      this.rule,
      { sid: 'TheRuleSends', bus: bus.eventBusName, name: ruleName },
      this.deadLetterQueue,
    );
    denySending(this.deadLetterQueue, []);
    Annotations.of(this).addInfoV2(
      'cdk-mailroom:forwardRole',
      `The role of the forward to ${target.node.path} is ${this.roleName}. A MailroomBus accepts it by acceptFrom({ role: '${this.roleName}', from: ` +
        `'${from}', events }), with the account if it is in another one.`,
    );
  }
}

/** EventBridge forwards an event between accounts and regions only once: the second bus of a chain would receive nothing. */
function pathProblems(forward: KnownForward, known: readonly KnownForward[]): string[] {
  const shares = (other: KnownForward) =>
    other.from === forward.from &&
    other.events.some(({ type }) => forward.events.some((event) => event.type === type));
  if (forward.fromBus === forward.toBus)
    return ['target is the bus itself, whose consumers receive the events already. Forward to another bus.'];
  const loop = known.find(
    (other) => shares(other) && other.fromBus === forward.toBus && other.toBus === forward.fromBus,
  );
  const chain = known.find(
    (other) => shares(other) && (other.toBus === forward.fromBus || other.fromBus === forward.toBus),
  );
  if (loop !== undefined)
    return [
      `It forms a loop with ${loop.path}, which forwards the same events of "${forward.from}" the other way. Forward each event only from the ` +
        'bus on which its service publishes it.',
    ];
  return unless(
    chain === undefined,
    `It forms a chain with ${chain?.path}, which forwards the same events of "${forward.from}", but EventBridge forwards an event only once. Forward them ` +
      'to each bus directly from the bus on which their service publishes them.',
  );
}

/** Validates the events of a forward, on either side. */
export function forwardedEventsProblems(from: string, events: readonly EventRef[]): string[] {
  return [
    ...serviceNameProblems('from', from),
    ...unless(
      events.length > 0,
      'events is empty. List the events that consumers on the other bus subscribe to.',
    ),
    ...events
      .filter(({ source }) => source !== from)
      .map(
        ({ source, type }) =>
          `events contains ${type} of "${source}", but from is "${from}". Use a forward for each service.`,
      ),
  ];
}

/** The longest name of a bus (EventBridge API reference, CreateEventBus). */
const BUS_NAME_MAX = 256;

/** Validates the fixed name of a bus. Parameters and tags contain it, so it must be known and hold no slash. */
export function busNameProblems(name: string | undefined): string[] {
  return unless(
    name === undefined ||
      (!Token.isUnresolved(name) &&
        /^[.\-_A-Za-z0-9]+$/.test(name) &&
        name.length <= BUS_NAME_MAX &&
        name !== 'default'),
    `eventBusName is "${name}", but must be 1 to ${BUS_NAME_MAX} letters, digits, ".", "_" or "-", and not "default". Choose a name like "shop".`,
  );
}
