import { MailroomError } from '../base/errors.ts';

/** The part of the client `SFN` of `@aws-sdk/client-sfn` that `startExecution` uses. */
export interface StateMachineClient {
  startExecution(
    input: { stateMachineArn: string; name: string; input: string },
    options?: { abortSignal?: AbortSignal },
  ): Promise<{ executionArn?: string | undefined }>;
}

/** The part of the client `Lambda` of `@aws-sdk/client-lambda` that `startExecution` uses. */
export interface DurableFunctionClient {
  invoke(
    input: {
      FunctionName: string;
      InvocationType: 'Event';
      DurableExecutionName: string;
      Payload: Uint8Array;
    },
    options?: { abortSignal?: AbortSignal },
  ): Promise<{ DurableExecutionArn?: string | undefined }>;
}

/** Members of any execution that `startExecution` starts. */
export interface ExecutionOfEvent {
  /**
   * The input, which JSON can write: at most 256 KiB for a state machine, 1 MB for a durable function. Build it from the event alone, so that each
   * attempt has the same one.
   */
  readonly input: unknown;
  /**
   * The name of the effect, as of `ctx.once`. An execution of another name than the default has it at the end of its own name. Give each execution of a
   * handler its own name, and never change it. @default 'execution'
   */
  readonly name?: string | undefined;
}

/** A standard execution of a Step Functions state machine. */
export interface StateMachineExecution extends ExecutionOfEvent {
  /** `new SFN(clientSettings)` */
  readonly client: StateMachineClient;
  /** The ARN of a state machine of the type Standard, or of a version or an alias of it. */
  readonly stateMachineArn: string;
}

/** An execution of a Lambda durable function. */
export interface DurableFunctionExecution extends ExecutionOfEvent {
  /** `new Lambda(clientSettings)` */
  readonly client: DurableFunctionClient;
  /** The ARN of a version or an alias of a durable function. */
  readonly functionArn: string;
}

/** A service that starts executions by name. */
export interface ExecutionStarter {
  readonly service: string;
  /** The most characters of an execution's name, and those that are allowed. */
  readonly nameMax: number;
  readonly name: RegExp;
  /** The most bytes of an execution's input. */
  readonly inputMax: number;
  /** The name of the error by which it refuses a name that an execution has. */
  readonly exists: string;
  /** The names of the errors that blame the input. Others that call a request invalid can be about the ARN. */
  readonly invalid: RegExp;
  /** @returns the ARN of the execution; `null` if it is not known */
  start(start: {
    readonly executionName: string;
    readonly input: string;
    readonly abortSignal: AbortSignal;
  }): Promise<string | null>;
  /** The ARN of an execution that was started before; `null` if its name does not tell. */
  arnOf(executionName: string): string | null;
}

/** @throws `BAD_ARGUMENT` if the ARN is not one that can be started under a name */
export function starterOf(execution: StateMachineExecution | DurableFunctionExecution): ExecutionStarter {
  return 'functionArn' in execution ? durableFunction(execution) : stateMachine(execution);
}

/** Step Functions API reference, StateMachine: of a version or an alias with its name at the end. Part 6 of an Express execution's ARN is `express`. */
const STATE_MACHINE = /^(?<head>arn:[^:]+:states:[^:]+:\d{12}):stateMachine:(?<name>[^:/]+)(?::[^:/]+)?$/;

/** Step Functions quotas and API reference, StartExecution. CloudWatch Logs takes no other characters in names. */
function stateMachine({ client, stateMachineArn }: StateMachineExecution): ExecutionStarter {
  const { head, name } = partsOf('stateMachineArn', stateMachineArn, STATE_MACHINE);
  const arnOf = (executionName: string) => `${head}:execution:${name}:${executionName}`;
  return {
    service: 'Step Functions',
    nameMax: 80,
    name: /^[A-Za-z0-9._-]+$/,
    inputMax: 256 * 1024,
    exists: 'ExecutionAlreadyExists',
    invalid: /^InvalidExecutionInput$/,
    start: async ({ executionName, input, abortSignal }) => {
      const request = { stateMachineArn, name: executionName, input };
      const { executionArn } = await client.startExecution(request, { abortSignal });
      return executionArn ?? arnOf(executionName);
    },
    arnOf,
  };
}

/** Lambda API reference: the ARN of a version or an alias. */
const FUNCTION = /^arn:[^:]+:lambda:[^:]+:\d{12}:function:[^:]+:[A-Za-z0-9_-]+$/;

/** Lambda API reference, Invoke and Execution. The ARN of an execution ends with an id that only Lambda knows. */
function durableFunction({ client, functionArn }: DurableFunctionExecution): ExecutionStarter {
  partsOf('functionArn', functionArn, FUNCTION);
  return {
    service: 'Lambda',
    nameMax: 64,
    name: /^[A-Za-z0-9_-]+$/,
    inputMax: 1024 * 1024,
    exists: 'DurableExecutionAlreadyStartedException',
    invalid: /^(InvalidRequestContent|RequestTooLarge)/,
    start: async ({ executionName: DurableExecutionName, input, abortSignal }) => {
      const Payload = Buffer.from(input);
      const { DurableExecutionArn = null } = await client.invoke(
        { FunctionName: functionArn, InvocationType: 'Event', DurableExecutionName, Payload },
        { abortSignal },
      );
      return DurableExecutionArn;
    },
    arnOf: () => null,
  };
}

const ALLOWED = {
  stateMachineArn: 'the ARN of a state machine, or of a version or an alias of one',
  functionArn: 'the ARN of a version or an alias of a durable function, such as one that ends with :live',
};

function partsOf(member: keyof typeof ALLOWED, arn: unknown, form: RegExp): Readonly<Record<string, string>> {
  const found = typeof arn === 'string' ? form.exec(arn) : null;
  if (found !== null) return { ...found.groups };
  const shown = typeof arn === 'string' ? `"${arn.slice(0, 200)}"` : `of type ${typeof arn}`;
  throw new MailroomError(
    'BAD_ARGUMENT',
    `startExecution: ${member} is ${shown}, but must be ${ALLOWED[member]}. Pass the construct's own ARN, e.g. through the function's environment.`,
  );
}
