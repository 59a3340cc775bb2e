import { Stack } from 'aws-cdk-lib';
import { ParameterTier, StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';

/** A standard parameter holds 4 KB, an advanced one 8 KB (Systems Manager quotas); names resolve to more than their tokens. */
const STANDARD_MAX_CHARS = 2_000;

/** Writes one entry of the directory: see `lambdas/runtime/directory.ts`. */
export function directoryEntry(scope: Construct, name: string, entry: object): StringParameter {
  const text = Stack.of(scope).toJsonString(entry);
  return new StringParameter(scope, 'DirectoryEntry', {
    parameterName: name,
    description: 'Where the parts of a Mailroom are. Written by its constructs.',
    stringValue: text,
    // The name holds a token, so the CDK cannot see for itself that it is a path.
    simpleName: false,
    tier: JSON.stringify(entry).length > STANDARD_MAX_CHARS ? ParameterTier.ADVANCED : ParameterTier.STANDARD,
  });
}
