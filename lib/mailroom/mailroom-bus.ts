import { ArnFormat, type Duration, Lazy, RemovalPolicy, Stack } from 'aws-cdk-lib';
import {
  CfnArchive,
  type CfnEventBus,
  CfnEventBusPolicy,
  EventBus,
  type IEventBus,
} from 'aws-cdk-lib/aws-events';
import {
  type Grant,
  type IGrantable,
  type IRole,
  PolicyDocument,
  type PolicyStatement,
  Role,
} from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { StringListParameter, StringParameter } from 'aws-cdk-lib/aws-ssm';
import { Construct } from 'constructs';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { busAuditorsName, sharedBusName } from '../../lambdas/runtime/operations/bus-directory.ts';
import { refuse, refuseNames, unless } from '../checks/refusal.ts';
import { physicalName } from '../functions/physical-name.ts';
import {
  ACCEPT_NAMES,
  acceptProblems,
  auditorsProblems,
  type BusAcceptOptions,
  letForward,
  onlyAcceptedForwards,
  onlyItsService,
  onlyPublishers,
  STATEMENT_ID_MAX,
} from './bus-acceptance.ts';
import { BusForward, type BusForwardOptions, busNameProblems, FORWARD_NAMES } from './bus-forward.ts';
import type { MailroomBusProps } from './mailroom-bus-props.ts';
import { allowPublish } from './publish-grant.ts';
import { arnOf, fixedArn, noRole, roleArn } from './role-arns.ts';
import { PUBLISHER_TAG, tag } from './tags.ts';

/** A forward that a bus accepts. */
interface AcceptedForward extends BusAcceptOptions {
  /** The ARN of its role. */
  readonly arn: string;
}

const NAMES: PropNames<MailroomBusProps> = {
  removalPolicy: 'optional',
  archive: 'optional',
  encryptionKey: 'optional',
  eventBusName: 'optional',
  shared: 'optional',
  auditors: 'optional',
};

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
  /** Encrypts it; absent if a key that AWS owns does. */
  readonly encryptionKey: IKey | undefined;
  /** The retention of its archive; absent without one. */
  readonly archiveRetention: Duration | undefined;
  private readonly publishers = new Set<string>();
  private readonly ownPolicy: PolicyDocument;
  private readonly accepted: AcceptedForward[] = [];
  private readonly audits = new Set<string>();
  /** The statement that admits accepted forwards. */
  private forwards: Construct | undefined;
  private readonly removalPolicy: RemovalPolicy;
  /** The name itself, which the policy needs: a bus cannot reference its own name. */
  private readonly ownName: string;

  constructor(scope: Construct, id: string, props: MailroomBusProps = {}) {
    refuseNames(`The bus ${scope.node.path}/${id}`, props, NAMES);
    refuse(`The bus ${scope.node.path}/${id}`, [
      ...busNameProblems(props.eventBusName),
      ...auditorsProblems(props.auditors),
    ]);
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
    this.ownPolicy = new PolicyDocument({
      statements: [onlyPublishers(this, this.ownArn(), this.shared && eventBusName, () => this.publishers)],
    });
    bus.policy = this.ownPolicy;
    this.encryptionKey = props.encryptionKey;
    bus.kmsKeyIdentifier = props.encryptionKey?.keyArn;
    for (const auditor of props.auditors ?? []) this.audits.add(fixedArn(auditor));
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
    const name = this.ownName;
    const statement = onlyAcceptedForwards(this, name, () => this.accepted.map(({ arn }) => arn));
    const forwards = this.addStatement(this, 'OnlyAcceptedForwardsPut', 'Forwards', statement);
    this.forwards = forwards;
    new StringListParameter(this, 'Auditors', {
      parameterName: busAuditorsName(this.eventBusName),
      description:
        'The roles of the audits that Mailrooms on this bus let read their inboxes and dead letters.',
      stringListValue: Lazy.list({ produce: () => this._auditors() }),
      simpleName: false,
    });
    const shared = new StringParameter(this, 'Shared', {
      parameterName: sharedBusName(this.eventBusName),
      description: 'Mailrooms of other apps look it up: a bus without it would refuse their relays.',
      stringValue: Stack.of(this).stackName,
      simpleName: false,
    });
    shared.node.addDependency(forwards);
  }

  /**
   * Adds a statement to the policy. On a shared bus, it is a resource: there, a change of the bus's own policy would remove the statements
   * that Mailrooms of other apps have added.
   */
  private addStatement(scope: Construct, sid: string, id: string, statement: PolicyStatement): Construct {
    statement.sid = sid;
    if (!this.shared) {
      this.ownPolicy.addStatements(statement);
      return this;
    }
    return new CfnEventBusPolicy(scope, id, {
      eventBusName: this.eventBusName,
      statementId: sid,
      statement: Lazy.any({ produce: () => statement.toStatementJson() }),
    });
  }

  /**
   * Lets a principal put events of these sources on this bus, and on no other. A call is denied as a whole if one of its events
   * has another source. The bus's policy names the principal; a shared bus recognizes it by a tag. Only services of Mailrooms are denied to
   * other publishers of a shared bus.
   *
   * @param sources - called at synth, when every producer is known
   * @throws `BAD_SETTINGS` if the bus is shared and this app does not create the role
   */
  grantPublish(grantee: IGrantable, sources: () => readonly string[]): Grant {
    const { grantPrincipal } = grantee;
    refuse(
      `The publisher of ${this.node.path}`,
      unless(
        Role.isRole(grantPrincipal) || !this.shared,
        'It has no role that this app creates, so it cannot get the tag by which a shared bus recognizes it, and a change of the own policy of the ' +
          "bus would remove the statements of other apps. Create the role in this app, or publish through a Mailroom's outbox.",
      ),
    );
    if (Role.isRole(grantPrincipal)) this._admit(grantPrincipal);
    else for (const arn of grantPrincipal.policyFragment.principalJson.AWS ?? []) this.publishers.add(arn);
    return allowPublish(this, grantee, sources);
  }

  /**
   * Forwards events of one service to a bus of another account or region, or to another bus of this one: a rule, its role and a
   * dead-letter queue. The events keep their ids, so inboxes there absorb duplicates whatever their path. The other bus must
   * accept them: {@link MailroomBus.acceptFrom}. EventBridge does not forward an event a second time.
   *
   * @throws `BAD_SETTINGS` if the events are not of that service, if forwards of this app would form a chain or a loop, or, at synth, if
   * a bus of this app does not accept them
   *
   * @example
   * ```ts
   * const ireland = EventBus.fromEventBusArn(this, 'Ireland', 'arn:aws:events:eu-west-1:111122223333:event-bus/shop');
   * bus.forwardTo(ireland, { from: 'orders', events: [OrderPlaced] });
   * ```
   */
  forwardTo(target: IEventBus, options: BusForwardOptions): BusForward {
    const { removalPolicy, encryptionKey } = this;
    refuseNames(`forwardTo of the bus ${this.node.path}`, options, FORWARD_NAMES);
    const id = `To${target.node.id}-${options.from}`;
    refuse(
      `The bus ${this.node.path}`,
      unless(
        this.node.tryFindChild(id) === undefined,
        `It already forwards events of "${options.from}" to ${target.node.path}. Pass all of their types in one call.`,
      ),
    );
    const forward = new BusForward(this, id, { ...options, bus: this, target, removalPolicy, encryptionKey });
    if (target instanceof MailroomBus)
      forward.node.addValidation({ validate: () => target.refusals(forward, options) });
    return forward;
  }

  /**
   * Accepts events of one service from a forward of another bus, which is known by the name of its role, and no others. A forward that is not
   * accepted is denied, also in the account of the bus. Within an account, the forward's own rule selects the types.
   *
   * Remove the acceptance with the forward: IAM lets another role take the name.
   *
   * @throws `BAD_SETTINGS` if `account` is not an account's number, `role` not a role's name, or if the events are not of that service
   *
   * @example
   * ```ts
   * bus.acceptFrom({ account: '444455556666', role: 'shop-Bus-Toshop-orders-0A1B2C3D-us-east-1', from: 'orders', events: [OrderPlaced] });
   * ```
   */
  acceptFrom(options: BusAcceptOptions): void {
    refuseNames(`acceptFrom of the bus ${this.node.path}`, options, ACCEPT_NAMES);
    refuse(`The bus ${this.node.path}`, acceptProblems(options));
    const { account, role, from } = options;
    const arn = roleArn(this, role, account);
    refuse(
      `The bus ${this.node.path}`,
      unless(
        !this.accepted.some((other) => other.arn === arn),
        `It already accepts events from the role ${role}. Each forward has its own role: pass all types of its service in one call.`,
      ),
    );
    // A derived name ends in the region, which may be a token, and no id may contain one.
    const accept = new Construct(this, `Accept-${account ?? ''}-${role.replace(/\$\{Token.*?\}/g, '')}`);
    this.accepted.push({ ...options, arn });
    if (!this.shared) this.publishers.add(arn);
    const busArn = this.shared ? this.eventBusArn : this.ownArn();
    const sid = (kind: string) => physicalName(new Construct(accept, kind), STATEMENT_ID_MAX);
    const only = this.addStatement(accept, sid('Only'), 'OnlyPolicy', onlyItsService(busArn, arn, from));
    // A role that is admitted first could publish any service meanwhile.
    this.forwards?.node.addDependency(only);
    if (account !== undefined && account !== this.env.account)
      this.addStatement(accept, sid('Accept'), 'Policy', letForward(busArn, account, arn, options));
  }

  /** The reasons why this bus would refuse the events of a forward. */
  private refusals({ node, roleName }: BusForward, { from, events }: BusForwardOptions): string[] {
    const types = this.accepted
      .filter((accepted) => accepted.role === roleName && accepted.from === from)
      .flatMap((accepted) => accepted.events.map(({ type }) => type));
    return events
      .filter(({ type }) => !types.includes(type))
      .map(
        ({ type }) =>
          `${node.path} forwards ${type} of "${from}" to ${this.node.path}, which does not accept it: EventBridge would send it to the ` +
          `forward's dead-letter queue. Call acceptFrom({ role: '${roleName}', from: '${from}', events }) of that bus.`,
      );
  }

  /**
   * Exempts a role of this app from the deny. A shared bus recognizes it by a tag, because its own policy must not change; the policy of
   * another bus names it.
   *
   * @internal
   */
  _admit(role: IRole): void {
    if (this.shared) tag(role, { [PUBLISHER_TAG]: this.ownName });
    else this.publishers.add(arnOf(role, this));
  }

  /** Lists the audit of a Mailroom of this app. @param role - its ARN, without a reference @internal */
  _listAuditor(role: string): void {
    this.audits.add(role);
  }

  /** The ARNs of the roles whose audits Mailrooms on this bus let read. @internal */
  _auditors(): string[] {
    return this.audits.size > 0 ? [...this.audits] : [noRole(this)];
  }

  private ownArn(): string {
    const resource = { service: 'events', resource: 'event-bus', resourceName: this.ownName };
    // A resource cannot reference itself.
    return Stack.of(this).formatArn({ ...resource, arnFormat: ArnFormat.SLASH_RESOURCE_NAME });
  }
}
