import { EnableRuleCommand, EventBridgeClient } from '@aws-sdk/client-eventbridge';
import {
  DeleteFunctionConcurrencyCommand,
  LambdaClient,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';

/** Runs a printed command of the AWS CLI as the CLI does: the same action, parameters, region and endpoint. */
export async function runAwsLine(line: string): Promise<void> {
  const [program, service, operation, ...words] = line.trim().split(/\s+/);
  const options = optionsOf(words);
  const take = (name: string): string => {
    const value = options.get(name);
    options.delete(name);
    if (value === undefined) throw new Error(`"${line}" lacks ${name}`);
    return value;
  };
  const settings = {
    region: take('--region'),
    endpoint: take('--endpoint-url'),
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  };
  switch (`${program} ${service} ${operation}`) {
    case 'aws events enable-rule': {
      const Name = take('--name');
      const EventBusName = options.has('--event-bus-name') ? take('--event-bus-name') : undefined;
      await new EventBridgeClient(settings).send(new EnableRuleCommand({ Name, EventBusName }));
      break;
    }
    case 'aws lambda update-event-source-mapping': {
      const UUID = take('--uuid');
      take('--enabled');
      await new LambdaClient(settings).send(new UpdateEventSourceMappingCommand({ UUID, Enabled: true }));
      break;
    }
    case 'aws lambda delete-function-concurrency': {
      const FunctionName = take('--function-name');
      await new LambdaClient(settings).send(new DeleteFunctionConcurrencyCommand({ FunctionName }));
      break;
    }
    default:
      throw new Error(`No test runs "${line}"`);
  }
  if (options.size > 0) throw new Error(`"${line}" has more options: ${[...options.keys()].join(', ')}`);
}

/** Options with their values; a flag's value is empty. */
function optionsOf(words: readonly string[]): Map<string, string> {
  const options = new Map<string, string>();
  for (const [index, word] of words.entries()) {
    const next = words[index + 1];
    if (word.startsWith('--')) options.set(word, next === undefined || next.startsWith('--') ? '' : next);
  }
  return options;
}
