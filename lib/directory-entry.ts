import { Stack } from 'aws-cdk-lib';
import { ParameterTier, StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';

/** Writes one entry of the directory: see `lambdas/runtime/operations/directory.ts`. */
export function directoryEntry(scope: Construct, name: string, entry: object): StringParameter {
  const text = Stack.of(scope).toJsonString(entry);
  return new StringParameter(scope, 'DirectoryEntry', {
    parameterName: name,
    description: 'Where the parts of a Mailroom are. Written by its constructs.',
    stringValue: text,
    // The name holds a token, so the CDK cannot see for itself that it is a path.
    simpleName: false,
    // Advanced only above 4 KB. A tier of our own choice could not go back when an entry shrinks: Systems Manager refuses to
    // make an advanced parameter a standard one, and the deployment would fail.
    tier: ParameterTier.INTELLIGENT_TIERING,
  });
}
