import { Names, Stack } from 'aws-cdk-lib';
import { CfnRole, type IRole } from 'aws-cdk-lib/aws-iam';
import type { IConstruct } from 'constructs';

/** The longest name of a role (IAM API reference, CreateRole). */
const ROLE_NAME_MAX = 64;

/** The longest name of a region: us-isof-south-1. */
const REGION_MAX = 15;

/**
 * A name for a role that policies of other stacks and apps contain. It is derived from stack and path alone, so it is known at synth, and
 * ends in the region, because the roles of all regions share their names.
 */
export function fixedRoleName(scope: IConstruct): string {
  const named = Names.uniqueResourceName(scope, {
    maxLength: ROLE_NAME_MAX - REGION_MAX - 1,
    separator: '-',
    allowedSpecialCharacters: '-',
  });
  return `${named}-${Stack.of(scope).region}`;
}

/** The ARN of a role of an account. */
export function roleArn(scope: IConstruct, name: string, account?: string): string {
  return Stack.of(scope).formatArn({
    service: 'iam',
    region: '',
    account,
    resource: 'role',
    resourceName: name,
  });
}

/** A role that cannot exist, because no account has this number: IAM accepts no empty list of ARNs. */
export function noRole(scope: IConstruct): string {
  return roleArn(scope, 'none', '000000000000');
}

/**
 * The ARN of a role for a policy. It identifies the role: a principal that may tag roles can give any role the same tags, but not the same
 * name. A policy of another stack cannot refer to a role that is deployed after it, so the role gets a fixed name.
 */
export function arnOf(role: IRole, policyOwner: IConstruct): string {
  return Stack.of(role) === Stack.of(policyOwner) ? role.roleArn : fixedArn(role);
}

/** The ARN of a role of this app without a reference to it. */
export function fixedArn(role: IRole): string {
  const resource = role.node.defaultChild;
  if (!(resource instanceof CfnRole)) return role.roleArn; // imported
  // The name of a role without one is a token that resolves to nothing.
  if (Stack.of(role).resolve(resource.roleName) === undefined) resource.roleName = fixedRoleName(role);
  return roleArn(role, `${(resource.path ?? '/').slice(1)}${resource.roleName}`);
}
