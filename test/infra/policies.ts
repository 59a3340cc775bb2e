import type { Template } from 'aws-cdk-lib/assertions';
import { resources } from './synth.ts';

/** One statement of a role's policy. */
export interface Statement {
  readonly actions: readonly string[];
  /** The partition keys it is bound to; absent when it is bound to none. */
  readonly keys?: readonly string[];
  readonly effect: string;
  /** Whether a request that names no partition key is outside of it. */
  readonly mustNameKeys: boolean;
}

/** What the role of a function may do, by the beginning of the policy's logical id. */
export function statementsOf(template: Template, policyPrefix: string): Statement[] {
  const policies = Object.entries(resources(template, 'AWS::IAM::ManagedPolicy'));
  const found = policies.filter(([id]) => id.startsWith(policyPrefix));
  if (found.length !== 1) throw new Error(`${found.length} policies begin with ${policyPrefix}`);
  return found.flatMap(([, policy]) => policy.Properties.PolicyDocument.Statement.map(statement));
}

/** The partition keys on which one action is allowed: `undefined` among them means any key. */
export function keysFor(statements: readonly Statement[], action: string): (string | undefined)[] {
  return statements
    .filter(({ actions }) => actions.includes(action))
    .flatMap<string | undefined>(({ keys }) => keys ?? [undefined]);
}

function statement(raw: Record<string, unknown>): Statement {
  const condition = raw.Condition as
    | { Null?: Record<string, string>; 'ForAllValues:StringLike'?: Record<string, string[]> }
    | undefined;
  return {
    effect: String(raw.Effect),
    actions: [raw.Action].flat() as string[],
    keys: condition?.['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'],
    mustNameKeys: condition?.Null?.['dynamodb:LeadingKeys'] === 'false',
  };
}
