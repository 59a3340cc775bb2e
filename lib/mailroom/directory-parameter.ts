import { ArnFormat, Lazy, Stack } from 'aws-cdk-lib';
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam';
import { ParameterTier, StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';
import { directoryPath } from '../../lambdas/runtime/operations/directory.ts';
import type { MailroomTable } from './mailroom-table.ts';

/** Writes one directory entry: see `lambdas/runtime/operations/directory.ts`. @param entry - called at synth */
export function directoryEntry(scope: Construct, name: string, entry: () => object): StringParameter {
  return new StringParameter(scope, 'DirectoryEntry', {
    parameterName: name,
    description: 'Locations of the parts of a Mailroom. Written by its constructs.',
    stringValue: Lazy.string({ produce: () => Stack.of(scope).toJsonString(entry()) }),
    // The name contains a token, so the CDK cannot detect that it is a path.
    simpleName: false,
    // The tier becomes advanced only above 4 KB. With a fixed tier, an entry that shrinks would fail the deployment: Systems
    // Manager refuses to change an advanced parameter back to a standard one.
    tier: ParameterTier.INTELLIGENT_TIERING,
  });
}

/** Lets a function read the directory of a Mailroom. @returns the ARN of the directory */
export function grantDirectory(scope: Construct, { tableName }: MailroomTable, grantee: IGrantable): string {
  return grantPath(scope, directoryPath(tableName), grantee);
}

/**
 * Lets a function read the parameters below a path. A permission on a path covers everything below it for `GetParametersByPath` only
 * (Systems Manager user guide, "Restricting access to Parameter Store parameters using IAM policies").
 *
 * @returns the ARN of the path
 */
export function grantPath(scope: Construct, path: string, grantee: IGrantable): string {
  const arn = Stack.of(scope).formatArn({
    service: 'ssm',
    resource: 'parameter',
    resourceName: path.slice(1),
    arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
  });
  Grant.addToPrincipal({ grantee, actions: ['ssm:GetParametersByPath'], resourceArns: [arn] });
  return arn;
}
