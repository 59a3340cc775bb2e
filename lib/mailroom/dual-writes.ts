import { Annotations, Aspects, Stack } from 'aws-cdk-lib';
import { type IGrantable, ManagedPolicy, Policy, Role } from 'aws-cdk-lib/aws-iam';
import { CfnEventInvokeConfig, CfnEventSourceMapping, CfnFunction } from 'aws-cdk-lib/aws-lambda';
import { Construct, type IConstruct } from 'constructs';
import { busOfPublisher } from './bus-publishers.ts';

/** The actions that announce something without the outbox. */
const ANNOUNCING = ['events:PutEvents', 'sns:Publish', 'sqs:SendMessage'];

/** The roles that are checked. */
const CHECKED = new WeakSet<IConstruct>();

/**
 * Warns, at synth, of a role that may write rows of a table and also announce changes without the outbox: a crash between the two
 * calls loses one of them.
 *
 * @param grantee - gets a right to write; a principal that is not a role of this app is not checked
 */
export function warnOfDualWrites(table: IConstruct, grantee: IGrantable): void {
  const role = grantee.grantPrincipal;
  if (!Construct.isConstruct(role) || !Role.isRole(role) || CHECKED.has(role)) return;
  CHECKED.add(role);
  // At synth, when all permissions are known.
  Aspects.of(role).add({
    visit: (node) => {
      if (node !== role) return;
      const calls = announcingCalls(role, ownTargets(role, grantee));
      if (calls.length === 0) return;
      Annotations.of(role).addWarningV2(
        'cdk-mailroom:dualWrite',
        `${role.node.path} may write rows of ${table.node.path} and also call ${calls.join(', ')} without the outbox. A crash between the two calls loses ` +
          'the message or leaves one about rows that were never written. Write an event instead, or acknowledge this warning if the ' +
          'messages are effects (ctx.once) or do not announce what the rows say.',
      );
    },
  });
}

/** The announcing actions that a role's policies allow. @param except - resources, as JSON, that do not count */
function announcingCalls(role: IConstruct, except: string): string[] {
  const policies = role.node
    .findAll()
    .filter((node) => node instanceof Policy || node instanceof ManagedPolicy);
  const statements = policies.flatMap((policy): PolicyLine[] => {
    const document: { readonly Statement?: PolicyLine[] } | undefined = Stack.of(policy).resolve(
      policy.document,
    );
    return document?.Statement ?? [];
  });
  const allowed = statements.filter(
    ({ Effect, Resource }) =>
      Effect === 'Allow' && ![Resource].flat().every((each) => except.includes(JSON.stringify(each))),
  );
  const patterns = allowed.flatMap(({ Action = [] }) => Action);
  return ANNOUNCING.filter((action) => patterns.some((pattern) => matches(pattern, action)));
}

/** A statement as it is rendered. */
interface PolicyLine {
  readonly Effect: string;
  readonly Action?: string | readonly string[];
  readonly Resource?: unknown;
}

function matches(pattern: string, action: string): boolean {
  return new RegExp(`^${pattern.replaceAll('*', '.*')}$`, 'i').test(action);
}

/** As JSON: where Lambda itself sends the failures of a function, and the bus on which it publishes at once. */
function ownTargets(role: Role, grantee: IGrantable): string {
  const parts = Construct.isConstruct(grantee) ? grantee.node.findAll() : [];
  const configs = parts.map((part) => {
    if (part instanceof CfnFunction) return part.deadLetterConfig;
    const isInvoked = part instanceof CfnEventInvokeConfig || part instanceof CfnEventSourceMapping;
    return isInvoked ? part.destinationConfig : undefined;
  });
  return JSON.stringify(Stack.of(role).resolve([busOfPublisher(role)?.eventBusArn, ...configs]));
}
