import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import { STSClient } from '@aws-sdk/client-sts';
import { type AwsClock, listenTo } from '../terminal/aws-clock.ts';
import { sharingReads } from './shared-reads.ts';
import type { Target } from './target.ts';

/** The AWS SDK clients of a run. Each is created when it is first used. */
export interface Clients {
  /** Their settings, for a client that only one command needs. */
  readonly settings: TargetSettings;
  readonly dynamo: DynamoDBClient;
  readonly sqs: SQSClient;
  readonly ssm: SSMClient;
  /** Invokes functions, once each. */
  readonly lambda: LambdaClient;
  /** Reads functions, and reads and switches their mappings, which Lambda throttles: it retries. */
  readonly lambdaReads: LambdaClient;
  readonly events: EventBridgeClient;
  readonly cloudwatch: CloudWatchClient;
  readonly cloudFormation: CloudFormationClient;
  readonly sts: STSClient;
}

/** Settings of the clients. */
interface TargetSettings extends Target {
  readonly maxAttempts: number;
  readonly requestHandler: typeof REQUEST_LIMITS;
}

/** Timeouts of a call: the terminal must not be silent for minutes. */
const REQUEST_LIMITS = { connectionTimeout: 3_000, requestTimeout: 30_000, throwOnRequestTimeout: true };

/** A synchronous invocation responds when the function is done, after at most 15 minutes. */
const INVOKE_LIMITS = { ...REQUEST_LIMITS, requestTimeout: 16 * 60_000 };

/** Creates the clients of a run. @param clock - learns AWS's time from the responses of DynamoDB and Systems Manager */
export function createClients(target: Target, clock: AwsClock): Clients {
  const settings = { ...target, maxAttempts: 5, requestHandler: REQUEST_LIMITS };
  return lazily({
    settings: () => settings,
    dynamo: () => listenTo(new DynamoDBClient(settings), clock),
    // The host of a queue's URL would override the chosen endpoint (AWS_ENDPOINT_URL, FIPS).
    sqs: () => sharingReads(new SQSClient({ ...settings, useQueueUrlAsEndpoint: false })),
    ssm: () => listenTo(new SSMClient(settings), clock),
    lambda: () => new LambdaClient({ ...settings, maxAttempts: 1, requestHandler: INVOKE_LIMITS }),
    lambdaReads: () => new LambdaClient(settings),
    events: () => new EventBridgeClient(settings),
    cloudwatch: () => new CloudWatchClient(settings),
    cloudFormation: () => new CloudFormationClient(settings),
    sts: () => new STSClient(settings),
  });
}

/** An object whose members are made when they are first read, once each. */
function lazily<Members extends object>(makers: { [Name in keyof Members]: () => Members[Name] }): Members {
  const members = {} as Members;
  for (const [name, make] of Object.entries<() => unknown>(makers)) {
    let made: unknown;
    const get = () => {
      made ??= make();
      return made;
    };
    Object.defineProperty(members, name, { enumerable: true, get });
  }
  return members;
}
