import { type Duration, Stack } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import type { IPrincipal, IRole } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Function as LambdaFunction, Tracing } from 'aws-cdk-lib/aws-lambda';
import { Construct, type IConstruct } from 'constructs';
import { type ProducerConfig, producerSettings } from '../../lambdas/runtime/base/config.ts';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { MAILROOM_TAG, SERVICE_TAG } from '../../lambdas/runtime/base/resource-tags.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { environmentText, isElsewhere } from '../checks/environment.ts';
import { serviceNameProblems } from '../checks/names.ts';
import { refuse, refuseNames, unless } from '../checks/refusal.ts';
import type { IInboxConsumer } from './consumer-interface.ts';
import { addUse, type DeclaredEvents, publishesProblems, useProblems } from './declared-events.ts';
import { type ProducerProps, producerProblems } from './mailroom-props.ts';
import type { PayloadBucket } from './payload-bucket.ts';
import type { IMailroomTable } from './row-grants.ts';
import { tag } from './tags.ts';

/** The functions of a Mailroom that look at the queues of its consumers. */
export interface QueueWatchers {
  readonly sweep: IPrincipal;
  /** Its own audit; absent if it has none, or is imported. */
  readonly audit?: IPrincipal;
  /** On a shared bus, the audits that the bus's owner lists, for a policy in the stack of this construct. */
  readonly others?: (policyOwner: Construct) => IPrincipal;
}

/** A Mailroom as its producers and consumers see it: one of this app, or an imported one. */
export interface IMailroom extends IConstruct {
  /** Holds the outbox, the inbox and the domain rows next to them. */
  readonly table: IMailroomTable;
  /** Receives the events that the relay publishes, and holds the rules of the consumers. */
  readonly bus: IEventBus;
  /** The retention of the archive; absent without an archive, and if it is unknown. */
  readonly archive: Duration | undefined;
  /** Encrypts all its data; absent if AWS-owned keys do, and for an imported Mailroom. */
  readonly encryptionKey: IKey | undefined;
  /** The roles that may send to the consumers' queues; absent if none are named, and for an imported Mailroom. */
  readonly operators: readonly IRole[] | undefined;
  /** X-Ray tracing of its functions. */
  readonly tracing: Tracing | undefined;
  /** The interval between scheduled heartbeats; absent without any, and for an imported Mailroom. */
  readonly heartbeatEvery: Duration | undefined;
  /** @see MailroomBase.addProducer */
  addProducer(producer: LambdaFunction, props: ProducerProps): void;
  /** @see MailroomBase.grantProducer */
  grantProducer(producer: LambdaFunction, domainKeys?: readonly string[]): void;
  /** @see MailroomBase.producerEnvironment */
  producerEnvironment(service: string, publishes: readonly EventRef[]): Record<string, string>;
  /** @see MailroomBase.producerConfig */
  producerConfig(service: string, publishes: readonly EventRef[]): ProducerConfig;
  /** @see MailroomBase.addConsumer */
  addConsumer(consumer: IInboxConsumer): void;
  /** The events that its services have declared in this app so far. @internal */
  readonly _declared: DeclaredEvents;
  /** Services of other apps publish on its bus. @internal */
  readonly _shared: boolean;
  /** @internal */
  readonly _watchers: QueueWatchers;
  /** Variables that its stack looks up at deployment, if imported; they replace those of {@link IMailroom.producerConfig}. @internal */
  readonly _environment: Readonly<Record<string, string>> | undefined;
  /** Keeps its large payloads; absent if its events carry them, and for an imported Mailroom. @internal */
  readonly _payloads: PayloadBucket | undefined;
}

const PRODUCER_NAMES: PropNames<ProducerProps> = {
  service: 'required',
  publishes: 'required',
  domainKeys: 'optional',
  publishAtOnce: 'optional',
};

/** The producers and consumers of a Mailroom, of this app or imported. */
export abstract class MailroomBase extends Construct implements IMailroom {
  abstract readonly table: IMailroomTable;
  abstract readonly bus: IEventBus;
  abstract readonly archive: Duration | undefined;
  abstract readonly encryptionKey: IKey | undefined;
  abstract readonly operators: readonly IRole[] | undefined;
  abstract readonly tracing: Tracing | undefined;
  abstract readonly heartbeatEvery: Duration | undefined;
  /** @internal */
  abstract readonly _declared: DeclaredEvents;
  /** @internal */
  abstract readonly _shared: boolean;
  /** @internal */
  abstract readonly _watchers: QueueWatchers;
  /** @internal */
  abstract readonly _environment: Readonly<Record<string, string>> | undefined;
  /** @internal */
  abstract readonly _payloads: PayloadBucket | undefined;
  private readonly byName = new Map<string, IInboxConsumer>();

  /** The settings that all producers share. */
  protected abstract readonly outbox: { readonly shards: number; readonly streamLease: Duration };

  /** Makes sure that the relay publishes a service. Called for each service of `publishes`, also repeatedly. */
  protected abstract declareService(service: string): void;

  /** Returns the reasons why a producer cannot publish at once, one sentence each. */
  protected abstract publishAtOnceProblems(producer: LambdaFunction, props: ProducerProps): string[];

  /**
   * Lets a function write events and the rows of its service: adds the grants and the environment variables in one call. The
   * relay is deployed before the function, so that every event written has a relay to publish it. A consumer's function may be a
   * producer of the same service, too: it may then publish the events of both.
   *
   * @throws `BAD_SETTINGS` if the service's name or a domain key is invalid, if `publishes` is empty, if it contains an event
   * of another service, or if the function belongs to another service or Mailroom, or is in another account or region
   */
  addProducer(producer: LambdaFunction, props: ProducerProps): void {
    refuseNames(`The producer ${producer.node.path}`, props, PRODUCER_NAMES);
    const { service, publishes, publishAtOnce } = props;
    const mailroom = this.node.path;
    refuse(`The producer ${producer.node.path}`, [
      ...producerProblems(props),
      ...placeProblems(this, producer),
      ...useProblems(producer, { mailroom, service }),
      ...(publishAtOnce === undefined ? [] : this.publishAtOnceProblems(producer, props)),
    ]);
    tag(producer, { [SERVICE_TAG]: service });
    const published = addUse(producer, { mailroom, service, publishes });
    for (const [name, value] of Object.entries(this.producerEnvironment(service, published))) {
      producer.addEnvironment(name, value);
    }
    this.grantProducer(producer, props.domainKeys);
    this._payloads?._letWrite(producer, service);
  }

  /**
   * Lets a function write events, and deploys the relay of this app before it. {@link MailroomBase.addProducer} also sets the environment
   * variables, and the source that the relay publishes.
   */
  grantProducer(producer: LambdaFunction, domainKeys: readonly string[] = []): void {
    const tags = { [MAILROOM_TAG]: this.node.path };
    for (const tagged of [producer, producer.role]) if (tagged) tag(tagged, tags);
    this.table.grantOutbox(producer);
    this.table.grantDomain(producer, domainKeys);
  }

  /**
   * Environment variables for a producer that is not a Lambda function, such as a container; `readProducerConfig` reads them.
   * Grant its role access with `table.grantOutbox`.
   *
   * @param publishes - as for {@link MailroomBase.addProducer}
   */
  producerEnvironment(service: string, publishes: readonly EventRef[]): Record<string, string> {
    return { ...producerSettings.encode(this.producerConfig(service, publishes)), ...this._environment };
  }

  /**
   * Settings of a function that writes as this service. It also declares the events, so the relay publishes their source.
   *
   * @throws `BAD_SETTINGS` if `publishes` contains an event of another service
   */
  producerConfig(service: string, publishes: readonly EventRef[]): ProducerConfig {
    refuse(`The service ${service}`, [
      ...serviceNameProblems('service', service),
      ...publishesProblems(service, publishes),
    ]);
    if (publishes.length > 0) this.declareService(service);
    this._declared.add(publishes);
    return {
      publishes: [...new Set(publishes.map(({ type }) => type))],
      service,
      tableName: this.table.tableName,
      shards: this.outbox.shards,
      bornLeaseMs: this.outbox.streamLease.toMilliseconds(),
    };
  }

  /** Its consumers in this app so far, in the order of their creation. */
  get consumers(): readonly IInboxConsumer[] {
    return [...this.byName.values()];
  }

  /**
   * Registers a consumer under its name. Two consumers with one name would share an inbox, and each would find the other's
   * messages already processed.
   *
   * @throws `BAD_SETTINGS` if the name is taken
   */
  addConsumer(consumer: IInboxConsumer): void {
    const { name } = consumer;
    const taken = this.byName.get(name)?.node.path;
    const problem =
      `name is "${name}", but ${taken} already has that name: two consumers with one name would share an inbox, and each ` +
      'event would reach only one of them. Choose a different name.';
    refuse(`The consumer ${consumer.node.path}`, taken === undefined ? [] : [problem]);
    this.byName.set(name, consumer);
  }
}

/** The stack with whose deployment a construct is deployed: nested stacks pass values on without exports. */
function deployedBy(part: IConstruct): Stack {
  const stack = Stack.of(part);
  return stack.nestedStackParent === undefined ? stack : deployedBy(stack.nestedStackParent);
}

/** Refuses parts of a Mailroom in another environment: a rule or a variable would name the bus or the table there, but reach one here. */
export function placeProblems(mailroom: IMailroom, part: IConstruct): string[] {
  const its = Stack.of(mailroom);
  const here = environmentText(Stack.of(part));
  const why = 'A Mailroom, its bus, its producers and its consumers must be in one account and region.';
  const remedy =
    'Create a Mailroom there, and forward the events to its bus: bus.forwardTo, and acceptFrom there.';
  return [
    ...unless(
      mailroom._environment === undefined || deployedBy(mailroom) === deployedBy(part),
      `mailroom is ${mailroom.node.path}, imported in another stack of this app. That stack would export what it looks up, and could never be deployed ` +
        'with another value while this one imports it. Call Mailroom.fromTableName in this stack, too.',
    ),
    ...unless(
      !isElsewhere(its, part),
      `mailroom is ${mailroom.node.path} in ${environmentText(its)}, but this is in ${here}. ${why} ${remedy}`,
    ),
    ...unless(
      !isElsewhere(mailroom.bus.env, part),
      `mailroom has a bus in ${environmentText(mailroom.bus.env)}, but this is in ${here}. ${why} ${remedy}`,
    ),
  ];
}
