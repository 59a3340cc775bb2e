import { type Alias, CfnFunction, type Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { functionBehind } from './existing-function.ts';

/** The settings of a function on Lambda Managed Instances. `undefined`: it runs on none, as far as this is known at synth. */
export function managedInstancesOf(
  given: LambdaFunction | Alias,
): { readonly perExecutionEnvironmentMaxConcurrency?: number } | undefined {
  const { defaultChild } = functionBehind(given).node;
  const provider = defaultChild instanceof CfnFunction ? defaultChild.capacityProviderConfig : undefined;
  const settings =
    provider && 'lambdaManagedInstancesCapacityProviderConfig' in provider
      ? provider.lambdaManagedInstancesCapacityProviderConfig
      : undefined;
  return settings && 'capacityProviderArn' in settings ? settings : undefined;
}

/**
 * Refuses a function whose environment runs several invocations. A message that kills its process is received again alone, so that it
 * does not use up the receives of others; in such an environment it would be beside those of other invocations.
 */
export function refuseSharedEnvironment(scope: Construct, handler: LambdaFunction): void {
  scope.node.addValidation({
    validate: () => {
      const settings = managedInstancesOf(handler);
      if (settings === undefined || settings.perExecutionEnvironmentMaxConcurrency === 1) return [];
      return [
        `perExecutionEnvironmentMaxConcurrency of ${handler.node.path} is ${settings.perExecutionEnvironmentMaxConcurrency ?? 'not set, so it is 64 for each vCPU'}, ` +
          'but must be 1 for a consumer: a message that kills its process would use up the receives of the messages that others process ' +
          'there. Call capacityProvider.addFunction(…, { perExecutionEnvironmentMaxConcurrency: 1 }).',
      ];
    },
  });
}
