import { Lazy, Stack, Token } from 'aws-cdk-lib';
import { CfnEventBusPolicy, type IEventBus } from 'aws-cdk-lib/aws-events';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';
import { sharedBusName } from '../../lambdas/runtime/operations/bus-directory.ts';
import { environmentText, isElsewhere } from '../checks/environment.ts';
import { unless } from '../checks/refusal.ts';
import { physicalName } from '../functions/physical-name.ts';
import { MailroomBus, NO_SOURCE, STATEMENT_ID_MAX } from './mailroom-bus.ts';
import type { MailroomProps } from './mailroom-props.ts';
import { FORWARD_TAG, OUTBOX_TAG, tag } from './tags.ts';

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
        'a bus here, and let the other one forward its events: bus.forwardTo, and acceptFrom in another account.',
    ),
    ...unless(
      bus instanceof MailroomBus || Token.isUnresolved(bus.eventBusName) || bus.eventBusName !== 'default',
      'bus is the default bus, on which AWS services publish and which has no policy of a Mailroom. Create a MailroomBus.',
    ),
  ];
}

/** A Mailroom as a joined bus knows it. */
interface JoiningMailroom {
  /** Its name for the tags of its roles: that of its table. */
  readonly name: string;
  readonly relays: readonly LambdaFunction[];
  /** The services that it publishes; read at synth. */
  readonly services: ReadonlySet<string>;
}

/**
 * Joins a bus: denies the Mailroom's sources to every principal except its relays, its producers that publish at once, and forwards from
 * other buses, so that neither another Mailroom nor an administrator publishes in their name. Each Mailroom adds its own statement to the
 * bus's policy.
 */
export function joinBus(
  mailroom: Construct,
  bus: IEventBus,
  { name, relays, services }: JoiningMailroom,
): void {
  // The deployment fails at once if the bus does not exist, or is not shared.
  if (!(bus instanceof MailroomBus) && !Token.isUnresolved(bus.eventBusName))
    StringParameter.valueForStringParameter(mailroom, sharedBusName(bus.eventBusName));
  for (const { role } of relays) if (role) tag(role, { [OUTBOX_TAG]: name });
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
        StringNotEquals: {
          [`aws:PrincipalTag/${OUTBOX_TAG}`]: name,
          [`aws:PrincipalTag/${FORWARD_TAG}`]: bus.eventBusName,
        },
        Bool: { 'aws:PrincipalIsAWSService': 'false' },
      },
    },
  });
}
