import { Kinesis } from '@aws-sdk/client-kinesis';
import { SNS } from '@aws-sdk/client-sns';
import { SQS } from '@aws-sdk/client-sqs';
import { clientSettings } from '../../../lambdas/runtime/index.ts';

/** Clients of a local AWS at an endpoint. */
export function awsClients(endpoint: string) {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const settings = { ...clientSettings, endpoint, region: 'us-east-1', credentials };
  return { sqs: new SQS(settings), sns: new SNS(settings), kinesis: new Kinesis(settings) };
}
