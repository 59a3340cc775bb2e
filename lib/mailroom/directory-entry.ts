import { Stack } from 'aws-cdk-lib';
import { ParameterTier, StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';

/** Writes one directory entry: see `lambdas/runtime/operations/directory.ts`. */
export function directoryEntry(scope: Construct, name: string, entry: object): StringParameter {
  const text = Stack.of(scope).toJsonString(entry);
  return new StringParameter(scope, 'DirectoryEntry', {
    parameterName: name,
    description: 'Locations of the parts of a Mailroom. Written by its constructs.',
    stringValue: text,
    // The name contains a token, so the CDK cannot detect that it is a path.
    simpleName: false,
    // The tier becomes advanced only above 4 KB. With a fixed tier, an entry that shrinks would fail the deployment: Systems
    // Manager refuses to change an advanced parameter back to a standard one.
    tier: ParameterTier.INTELLIGENT_TIERING,
  });
}
