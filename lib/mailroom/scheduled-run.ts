import type { Duration } from 'aws-cdk-lib';
import { Rule, RuleTargetInput, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import type { Construct } from 'constructs';
import { acknowledge } from '../functions/acknowledgements.ts';
import type { ServiceFunction } from '../service-function.ts';

/** The input of every scheduled run. Handlers ignore it. It is not `{}`, because LocalStack drops a run whose input is empty. */
const INPUT = RuleTargetInput.fromObject({ scheduled: true });

/** The interval between runs. */
interface ScheduledRun {
  /** The description of the rule. */
  readonly description: string;
  readonly every: Duration;
  /** A run that has not started within this time is dropped. */
  readonly maxEventAge: Duration;
}

/** Runs a function on a schedule. A failed run is not retried: the next one does its work. */
export function scheduleRuns(scope: Construct, scheduled: ServiceFunction, run: ScheduledRun): Rule {
  const noRepeat = { retryAttempts: 0, maxEventAge: run.maxEventAge };
  scheduled.configureAsyncInvoke(noRepeat);
  const rule = new Rule(scope, 'Schedule', {
    description: run.description,
    schedule: Schedule.rate(run.every),
    targets: [new LambdaFunction(scheduled, { ...noRepeat, event: INPUT })],
  });
  const reason =
    'A failed run is not retried: the next one does its work, and an alarm fires if none succeeds.';
  acknowledge(scheduled, { LambdaAsyncFailureDestination: reason });
  acknowledge(rule, { EventBusDLQ: reason });
  return rule;
}
