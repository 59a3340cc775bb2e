import { Lazy, Token } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import { AccountPrincipal, AnyPrincipal, Effect, type IRole, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { unless } from '../checks/refusal.ts';
import { type BusForwardOptions, forwardedEventsProblems } from './bus-forward.ts';
import { onlySources } from './publish-grant.ts';
import { noRole } from './role-arns.ts';
import { FORWARD_TAG, PUBLISHER_TAG } from './tags.ts';

/** The events that a bus accepts from a forward. */
export interface BusAcceptOptions extends Pick<BusForwardOptions, 'events' | 'from'> {
  /** The name of the forward's role: `BusForward.roleName`, which `cdk synth` of its app prints. */
  readonly role: string;
  /** The number of the account whose bus forwards them. @default the account of the bus */
  readonly account?: string;
}

/** The longest id of a statement (EventBridge API reference, PutPermission). */
export const STATEMENT_ID_MAX = 64;

/** The name of a role without its path (IAM API reference, CreateRole). */
const ROLE_NAME = /^[\w+=,.@-]{1,64}$/;

/** The names of {@link BusAcceptOptions}. */
export const ACCEPT_NAMES: PropNames<BusAcceptOptions> = {
  role: 'required',
  from: 'required',
  events: 'required',
  account: 'optional',
};

/** Validates what a bus accepts. */
export function acceptProblems({ account, role, from, events }: BusAcceptOptions): string[] {
  return [
    ...unless(
      account === undefined || /^\d{12}$/.test(account),
      `account is "${account}", but must be the 12 digits of an account. Pass the account whose bus forwards the events, or omit it.`,
    ),
    ...unless(
      Token.isUnresolved(role) || ROLE_NAME.test(role),
      `role is "${role}", but must be the name of the forward's role, without path or ARN. \`cdk synth\` of the app with the forward prints it.`,
    ),
    ...forwardedEventsProblems(from, events),
  ];
}

/** Validates the audits that a bus lists: conditions take `*` and `?` for wildcards, and a comma would end a name in the parameter's list. */
export function auditorsProblems(auditors: readonly IRole[] = []): string[] {
  return auditors
    .map(({ roleName }) => roleName)
    .filter((name) => !Token.isUnresolved(name) && (!ROLE_NAME.test(name) || name.includes(',')))
    .map(
      (name) =>
        `auditors contains the role "${name}", but each must be one role, by a name without wildcards and commas. Import each audit's role by its own name.`,
    );
}

/**
 * Denies every event of principals other than the publishers of the bus. AWS services, which replay its archive, are not denied.
 *
 * @param busArn - without a reference: a resource cannot reference itself
 * @param tagged - the name in the tag by which a shared bus recognizes publishers; `false` if the bus is not shared
 * @param publishers - returns the ARNs of those that the bus names; called at synth
 */
export function onlyPublishers(
  bus: IEventBus,
  busArn: string,
  tagged: string | false,
  publishers: () => ReadonlySet<string>,
): PolicyStatement {
  return new PolicyStatement({
    sid: 'OnlyPublishersPut',
    effect: Effect.DENY,
    principals: [new AnyPrincipal()],
    actions: ['events:PutEvents'],
    resources: [busArn],
    conditions: {
      ArnNotEquals: {
        'aws:PrincipalArn': Lazy.list({
          // A shared bus may have no publisher that it names, and IAM accepts no empty list.
          produce: () => (publishers().size > 0 ? [...publishers()] : [noRole(bus)]),
        }),
      },
      ...(tagged !== false && { StringNotEquals: { [`aws:PrincipalTag/${PUBLISHER_TAG}`]: tagged } }),
      Bool: { 'aws:PrincipalIsAWSService': 'false' },
    },
  });
}

/**
 * Denies every event to forwards that the bus has not accepted. The statements of Mailrooms let all roles with the tag of a forward past,
 * because they cannot know which ones the bus's owner accepts; so a role with that tag which is not in the list may put nothing.
 *
 * @param accepted - returns the ARNs of their roles; called at synth
 */
export function onlyAcceptedForwards(
  bus: IEventBus,
  name: string,
  accepted: () => readonly string[],
): PolicyStatement {
  return new PolicyStatement({
    sid: 'OnlyAcceptedForwardsPut',
    effect: Effect.DENY,
    principals: [new AnyPrincipal()],
    actions: ['events:PutEvents'],
    resources: [bus.eventBusArn],
    conditions: {
      StringEquals: { [`aws:PrincipalTag/${FORWARD_TAG}`]: name },
      ArnNotEquals: {
        'aws:PrincipalArn': Lazy.list({
          produce: () => (accepted().length > 0 ? [...accepted()] : [noRole(bus)]),
        }),
      },
    },
  });
}

/** Denies an accepted forward the events of other services, whatever its own policies and tags are. @param role - the ARN of its role */
export function onlyItsService(busArn: string, role: string, from: string): PolicyStatement {
  return new PolicyStatement({
    effect: Effect.DENY,
    principals: [new AnyPrincipal()],
    actions: ['events:PutEvents'],
    resources: [busArn],
    conditions: {
      ArnEquals: { 'aws:PrincipalArn': role },
      'ForAnyValue:StringNotEquals': { 'events:source': from },
    },
  });
}

/** Lets an accepted forward of another account put the events. @param role - the ARN of its role */
export function letForward(
  busArn: string,
  account: string,
  role: string,
  { from, events }: BusAcceptOptions,
): PolicyStatement {
  const { Null, ...sources } = onlySources(() => [from]);
  return new PolicyStatement({
    principals: [new AccountPrincipal(account)],
    actions: ['events:PutEvents'],
    resources: [busArn],
    conditions: {
      ...sources,
      StringEquals: { 'events:detail-type': events.map(({ type }) => type) },
      ArnEquals: { 'aws:PrincipalArn': role },
      Null,
    },
  });
}
