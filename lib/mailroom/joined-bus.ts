import { Lazy, Stack, Token } from 'aws-cdk-lib';
import { CfnEventBusPolicy, type IEventBus } from 'aws-cdk-lib/aws-events';
import { StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';
import { sharedBusName } from '../../lambdas/runtime/operations/bus-directory.ts';
import { environmentText, isElsewhere } from '../checks/environment.ts';
import { unless } from '../checks/refusal.ts';
import { physicalName } from '../functions/physical-name.ts';
import { STATEMENT_ID_MAX } from './bus-acceptance.ts';
import { MailroomBus } from './mailroom-bus.ts';
import type { MailroomProps } from './mailroom-props.ts';
import { NO_SOURCE } from './publish-grant.ts';
import { FORWARD_TAG } from './tags.ts';

/** Validates the bus that a Mailroom joins. */
export function joinProblems(
  mailroom: Construct,
  { bus, archive }: Pick<MailroomProps, 'bus' | 'archive'>,
): string[] {
  if (bus === undefined) return [];
  return [
    ...unless(
      !(bus instanceof MailroomBus) || bus.shared,
      `bus is ${bus.node.path}, which the Mailroom ${bus.node.scope?.node.path} made for itself and which admits no other relay. Create a MailroomBus, and ` +
        'pass it to both.',
    ),
    ...unless(
      archive === undefined,
      'archive and bus are both given, but the archive belongs to the bus. Set archive on the MailroomBus.',
    ),
    ...unless(
      !isElsewhere(bus.env, mailroom),
      `bus is in ${environmentText(bus.env)}, but must be in the account and the region of its Mailrooms: here ${environmentText(Stack.of(mailroom))}. Create ` +
        'a bus here, and let the other one forward its events: bus.forwardTo, and acceptFrom here.',
    ),
    ...unless(
      bus instanceof MailroomBus || Token.isUnresolved(bus.eventBusName) || bus.eventBusName !== 'default',
      'bus is the default bus, on which AWS services publish and which has no policy of a Mailroom. Create a MailroomBus.',
    ),
  ];
}

/** A Mailroom as a joined bus knows it. */
interface JoiningMailroom {
  /** The ARNs of the roles that publish: of its relays, and of producers that publish at once. Read at synth. */
  readonly publishers: ReadonlySet<string>;
  /** The services that it publishes; read at synth. */
  readonly services: ReadonlySet<string>;
}

/**
 * Joins a bus: denies the Mailroom's sources to every principal except its relays and its producers that publish at once, which the statement
 * names, and forwards, of which the bus's own policy denies all that its owner did not accept. Each Mailroom adds its own statement to the
 * bus's policy. A principal that may change that policy, or assume or pass one of these roles, is not stopped.
 */
export function joinBus(
  mailroom: Construct,
  bus: IEventBus,
  { publishers, services }: JoiningMailroom,
): void {
  // The deployment fails at once if the bus does not exist, or is not shared.
  if (!(bus instanceof MailroomBus) && !Token.isUnresolved(bus.eventBusName))
    StringParameter.valueForStringParameter(mailroom, sharedBusName(bus.eventBusName));
  const statementId = physicalName(mailroom, STATEMENT_ID_MAX);
  new CfnEventBusPolicy(mailroom, 'Guard', {
    eventBusName: bus.eventBusName,
    statementId,
    statement: {
      Sid: statementId,
      Effect: 'Deny',
      Principal: '*',
      Action: 'events:PutEvents',
      Resource: bus.eventBusArn,
      Condition: {
        'ForAnyValue:StringEquals': {
          'events:source': Lazy.list({
            produce: () => (services.size > 0 ? [...services].sort() : [NO_SOURCE]),
          }),
        },
        ArnNotEquals: { 'aws:PrincipalArn': Lazy.list({ produce: () => [...publishers] }) },
        StringNotEquals: { [`aws:PrincipalTag/${FORWARD_TAG}`]: bus.eventBusName },
        Bool: { 'aws:PrincipalIsAWSService': 'false' },
      },
    },
  });
}
