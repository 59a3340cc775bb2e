import { Validations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** Rules of cdk-nag's packs that a Mailroom construct deliberately does not follow. */
const RULES = {
  LambdaConcurrency: ['HIPAA.Security', 'NIST.800.53.R5'],
  LambdaDLQ: ['HIPAA.Security', 'NIST.800.53.R5', 'Serverless'],
  LambdaInsideVPC: ['HIPAA.Security', 'NIST.800.53.R5', 'PCI.DSS.321'],
  LambdaAsyncFailureDestination: ['Serverless'],
  LambdaEventSourceMappingDestination: ['Serverless'],
  EventBusDLQ: ['Serverless'],
  SQS3: ['AwsSolutions'],
  SQSRedrivePolicy: ['Serverless'],
  EC23: ['AwsSolutions'],
  EC2RestrictedSSH: ['HIPAA.Security', 'NIST.800.53.R5', 'PCI.DSS.321'],
  EC2RestrictedCommonPorts: ['HIPAA.Security', 'NIST.800.53.R5', 'PCI.DSS.321'],
  CloudWatchAlarmAction: ['HIPAA.Security', 'NIST.800.53.R5'],
} satisfies Readonly<Record<string, readonly string[]>>;

/** Records for cdk-nag why a construct does not follow a rule, in every pack that has the rule. */
export function acknowledge(
  construct: IConstruct,
  reasons: Partial<Readonly<Record<keyof typeof RULES, string>>>,
): void {
  for (const [rule, reason] of Object.entries(reasons)) {
    for (const pack of RULES[rule as keyof typeof RULES])
      Validations.of(construct).acknowledge({ id: `${pack}-${rule}`, reason });
  }
}

/** Acknowledges the rules about dead-letter queues for a queue that is the last stop of its messages. */
export function acknowledgeLastStop(queue: IConstruct, what: string): void {
  const reason = `This queue is ${what}; the sweep watches it, and operators empty it.`;
  acknowledge(queue, { SQS3: reason, SQSRedrivePolicy: reason });
}
