import { Annotations, Resource, Stack, Token } from 'aws-cdk-lib';
import {
  type AddToResourcePolicyResult,
  Grant,
  type GrantOnPrincipalOptions,
  type IGrantable,
  PolicyStatement,
  Role,
} from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { Construct, Dependable, type IConstruct } from 'constructs';

/** A resource with a policy. That of an imported resource cannot be changed: the CDK then adds nothing and reports nothing. */
interface GuardedResource extends IConstruct {
  addToResourcePolicy(statement: PolicyStatement): AddToResourcePolicyResult;
}

/**
 * Adds statements to the policy of a resource. If the resource is imported, a warning at synth contains them.
 *
 * @param arn - of the resource
 * @param otherwise - what happens without the statements, e.g. `EventBridge drops events`
 */
export function addToPolicyOf(
  scope: IConstruct,
  resource: GuardedResource,
  arn: string,
  otherwise: string,
  ...statements: readonly PolicyStatement[]
): AddToResourcePolicyResult[] {
  const results = statements.map((statement) => resource.addToResourcePolicy(statement));
  if (results.some(({ statementAdded }) => !statementAdded)) {
    const name = Token.isUnresolved(arn) ? resource.node.path : `${resource.node.path} (${arn})`;
    warnOfMissing(
      scope,
      `${name} is imported, so this app cannot change its policy. As it is, ${otherwise}`,
      statements,
    );
  }
  return results;
}

/** Grants a principal what `Grant.addToPrincipal` does. If its policies cannot be changed, a warning at synth contains the statement. */
export function grantTo(scope: IConstruct, options: GrantOnPrincipalOptions): Grant {
  const grant = Grant.addToPrincipal(options);
  const { actions, resourceArns: resources, conditions } = options;
  if (!isEffective(grant, options.grantee))
    warnOfPrincipal(scope, options.grantee, [new PolicyStatement({ actions, resources, conditions })]);
  return grant;
}

/**
 * Warns of a grant to a function that changed no policy: of a role with `mutable: false`, or of a resource in another account, whose own policy
 * must allow it too.
 */
export function checkGrant(
  grantee: LambdaFunction,
  grant: Grant,
  resource: IConstruct & { readonly env: { readonly account: string } },
): void {
  const { principalStatements, resourceStatements } = grant;
  if (!isEffective(grant, grantee)) warnOfPrincipal(grantee, grantee, principalStatements);
  const { account } = resource.env;
  const own = Stack.of(grantee).account;
  if ([account, own].some((each) => Token.isUnresolved(each)) || account === own) return;
  if (Resource.isOwnedResource(resource)) return; // its policy is in this app
  const needed =
    resourceStatements.length > 0
      ? resourceStatements // for other accounts, the CDK makes them even for a policy that it cannot change
      : principalStatements.map((statement) => {
          const copy = statement.copy();
          copy.addPrincipals(grantee.grantPrincipal);
          return copy;
        });
  const text = `${resource.node.path} is in the account ${account}, so its policy, and that of its key, must allow ${grantee.node.path} to use it`;
  warnOfMissing(grantee, text, needed);
}

/**
 * The CDK reports success also for a role that it may not change, but such a grant depends on nothing. A grant to a role of this app depends on
 * its policy only later.
 */
function isEffective(grant: Grant, { grantPrincipal }: IGrantable): boolean {
  const isOwn = Role.isRole(grantPrincipal);
  return grant.success && (isOwn || Dependable.of(grant).dependencyRoots.length > 0);
}

function warnOfPrincipal(
  scope: IConstruct,
  { grantPrincipal }: IGrantable,
  statements: readonly PolicyStatement[],
): void {
  const name = Construct.isConstruct(grantPrincipal)
    ? grantPrincipal.node.path
    : JSON.stringify(Stack.of(scope).resolve(grantPrincipal.policyFragment.principalJson));
  warnOfMissing(scope, `${name} cannot be given permissions by this app`, statements);
}

/** The CDK's names for ARNs that are known only at deployment would have to be replaced in a pasted statement. */
function warnOfMissing(scope: IConstruct, problem: string, statements: readonly PolicyStatement[]): void {
  const json = JSON.stringify(Stack.of(scope).resolve(statements.map((each) => each.toStatementJson())));
  const text = json.replace(/\{"Fn::GetAtt":\["(\w+)","Arn"\]\}/g, '"<ARN of $1>"');
  Annotations.of(scope).addWarningV2(
    'cdk-mailroom:missingPermission',
    `${problem}. Add ${statements.length === 1 ? 'this statement' : 'these statements'} to its policy: ${text}`,
  );
}
