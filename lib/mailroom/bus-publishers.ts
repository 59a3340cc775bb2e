import { Stack } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import { type IRole, Role } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { MailroomBus } from './mailroom-bus.ts';
import { allowPublish } from './publish-grant.ts';
import { PUBLISHER_TAG, tag } from './tags.ts';

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
 * Lets a relay put events of these sources on its bus, and on no other.
 *
 * @param sources - called at synth, when every producer is known
 */
export function publishOn(bus: IEventBus, relay: LambdaFunction, sources: () => readonly string[]): void {
  if (bus instanceof MailroomBus && Stack.of(bus) === Stack.of(relay)) {
    bus.grantPublish(relay, sources);
    return;
  }
  if (relay.role) admit(bus, relay.role);
  allowPublish(bus, relay, sources);
}

/** Lets a role of any stack past the deny of a bus. A bus of another app is shared, so it recognizes its publishers by their tag. */
function admit(bus: IEventBus, role: IRole): void {
  if (bus instanceof MailroomBus) bus._admit(role);
  else tag(role, { [PUBLISHER_TAG]: bus.eventBusName });
}

/** Returns the reasons why the bus of a Mailroom could not recognize the function's role, one sentence each. */
export function publisherProblems(mailroom: OnBus, { role }: LambdaFunction): string[] {
  if (role === undefined || !Role.isRole(role)) {
    return [
      'publishAtOnce needs a role that this app creates, because the policy of the bus names it. Let the function create its role, or ' +
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
 * Lets a function of any stack put events of these sources on the bus of a Mailroom, and on no other.
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
    admit(bus, producer.role);
  }
  allowPublish(bus, producer, sources);
}
