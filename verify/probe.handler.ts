import {
  BatchWriteItemCommand,
  DeleteItemCommand,
  DynamoDBClient,
  ExecuteStatementCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { acceptedEntries, outcomeOf, type ProbeCall, type ProbeOutcome } from './probe-call.ts';

const dynamo = new DynamoDBClient({});
const events = new EventBridgeClient({});
const sqs = new SQSClient({ useQueueUrlAsEndpoint: false });

function send(call: ProbeCall): Promise<unknown> {
  switch (call.command) {
    case 'BatchWriteItem':
      return dynamo.send(new BatchWriteItemCommand(call.input));
    case 'DeleteItem':
      return dynamo.send(new DeleteItemCommand(call.input));
    case 'ExecuteStatement':
      return dynamo.send(new ExecuteStatementCommand(call.input));
    case 'GetItem':
      return dynamo.send(new GetItemCommand(call.input));
    case 'PutItem':
      return dynamo.send(new PutItemCommand(call.input));
    case 'Query':
      return dynamo.send(new QueryCommand(call.input));
    case 'Scan':
      return dynamo.send(new ScanCommand(call.input));
    case 'UpdateItem':
      return dynamo.send(new UpdateItemCommand(call.input));
    case 'PutEvents':
      return events.send(new PutEventsCommand(call.input)).then(acceptedEntries);
    case 'SendMessage':
      return sqs.send(new SendMessageCommand(call.input));
  }
}

/** Makes the calls, one after the other, with the role of this function. */
export async function handler({ calls }: { readonly calls: readonly ProbeCall[] }): Promise<ProbeOutcome[]> {
  const outcomes: ProbeOutcome[] = [];
  for (const call of calls) outcomes.push(await outcomeOf(() => send(call)));
  return outcomes;
}
