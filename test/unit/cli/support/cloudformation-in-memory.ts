import { CloudFormationClient, type Stack, type StackResourceDrift } from '@aws-sdk/client-cloudformation';

/** A deployed stack. */
export interface StackInMemory {
  readonly body: string;
  readonly physicalIds: Readonly<Record<string, string>>;
  readonly described?: Partial<Stack>;
  /** Its drift detection. @default refused: a detection is already in progress */
  readonly drift?: DriftInMemory;
}

interface DriftInMemory {
  readonly drifts: readonly StackResourceDrift[];
  /** Its states, one for each look; the last one stays. @default `DETECTION_COMPLETE` */
  readonly states?: string[];
  readonly reason?: string;
}

/** The most resources and exports of a page, as in CloudFormation. */
const PAGE = 100;

/** A client of CloudFormation that has some stacks, and the names of the commands that it was sent. */
export function cloudFormationInMemory(
  stacks: Readonly<Record<string, StackInMemory>>,
  exports: Readonly<Record<string, string>> = {},
): { readonly client: CloudFormationClient; readonly sent: string[] } {
  const sent: string[] = [];
  const client = new CloudFormationClient({ region: 'us-east-1' });
  const answer = (
    command: string,
    { StackName = '', StackDriftDetectionId, NextToken }: Readonly<Record<string, string>>,
  ) => {
    const name = StackDriftDetectionId ?? StackName;
    const stack = stacks[name];
    if (command === 'ListExportsCommand') {
      const all = Object.entries(exports).map(([Name, Value]) => ({ Name, Value }));
      return paged('Exports', all, NextToken);
    }
    if (stack === undefined)
      throw Object.assign(new Error(`Stack with id ${name} does not exist`), {
        name: 'ValidationError',
      });
    if (/Drift/.test(command)) return driftAnswer(command, name, stack, NextToken);
    if (command === 'GetTemplateCommand') return { TemplateBody: stack.body };
    if (command === 'DescribeStacksCommand') {
      const StackId = `arn:aws:cloudformation:eu-central-1:111122223333:stack/${StackName}/1`;
      return { Stacks: [{ StackName, StackId, StackStatus: 'UPDATE_COMPLETE', ...stack.described }] };
    }
    const all = Object.entries(stack.physicalIds).map(([LogicalResourceId, PhysicalResourceId]) => ({
      LogicalResourceId,
      PhysicalResourceId,
      ResourceStatus: 'CREATE_COMPLETE',
    }));
    return paged('StackResourceSummaries', all, NextToken);
  };
  client.send = (async (command: { constructor: { name: string }; input: Record<string, string> }) => {
    sent.push(command.constructor.name);
    return answer(command.constructor.name, command.input);
  }) as never;
  return { client, sent };
}

function driftAnswer(command: string, name: string, { drift }: StackInMemory, token?: string) {
  if (drift === undefined)
    throw Object.assign(new Error('Drift detection is already in progress.'), { name: 'ValidationError' });
  if (command === 'DetectStackDriftCommand') return { StackDriftDetectionId: name };
  if (command === 'DescribeStackResourceDriftsCommand')
    return paged('StackResourceDrifts', drift.drifts, token);
  const { states = [] } = drift;
  const DetectionStatus = (states.length > 1 ? states.shift() : states[0]) ?? 'DETECTION_COMPLETE';
  return { DetectionStatus, DetectionStatusReason: drift.reason };
}

function paged(name: string, all: readonly unknown[], token = '0') {
  const end = Number(token) + PAGE;
  return {
    [name]: all.slice(Number(token), end),
    ...(end < all.length && { NextToken: String(end) }),
  };
}
