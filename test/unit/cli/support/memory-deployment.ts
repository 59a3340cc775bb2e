import type { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import type { InvokeCommand } from '@aws-sdk/client-lambda';
import type { FunctionSettings } from '../../../../cli/deployment/deployed-function.ts';
import type { Deployment } from '../../../../cli/deployment/deployment.ts';
import { dynamoRows } from '../../../../cli/deployment/dynamo-rows.ts';
import type { OpenDatabase } from '../../../../cli/deployment/open-database.ts';
import { consumerNamed } from '../../../../cli/deployment/source-consumer.ts';
import type { StoredRows } from '../../../../cli/deployment/stored-rows.ts';
import type { GlobalOptions } from '../../../../cli/deployment/target.ts';
import type { Io } from '../../../../cli/terminal/io.ts';
import { createTerminal } from '../../../../cli/terminal/terminal.ts';
import type { InboxChanges } from '../../../../lambdas/runtime/inbox/inbox-operator.ts';
import type { mailroomInMemory } from './mailroom-in-memory.ts';
import { resourcesInMemory } from './resources-in-memory.ts';

/** A Mailroom in memory on which `runInMemory` runs the whole command. */
export type MemoryMailroom = ReturnType<typeof mailroomInMemory> & {
  /** @default the rows of its table */
  readonly stored?: StoredRows;
  /** @default those of its table */
  readonly inboxChanges?: InboxChanges;
  /** @default none */
  readonly database?: OpenDatabase | undefined;
  /** @default none */
  readonly cloudFormation?: CloudFormationClient;
  /** @default everything is as declared */
  readonly deployed?: ReturnType<typeof resourcesInMemory>;
  /** @default false */
  readonly isLocal?: boolean;
  /** The deployed functions. @default each is healthy */
  readonly functionOf?: (name: string) => FunctionSettings | undefined;
};

/** A healthy function that reads a queue. */
export const healthyFunction: FunctionSettings = {
  timeoutMs: 30_000,
  memoryMb: 512,
  runtime: 'nodejs24.x',
  logGroup: 'worker-logs',
  reservedConcurrency: null,
  mappings: [{ source: 'queue', state: 'Enabled', batchSize: 10, batchingWindowMs: 0, maxConcurrency: 5 }],
};

/** A deployment on a Mailroom in memory, in place of `openDeployment`. Its only AWS client invokes the functions of the consumer and the sweep. */
export function memoryDeployment(
  mailroom: MemoryMailroom,
  io: Io,
  { json = false }: GlobalOptions,
): Deployment {
  const { clock, table, queues, directory } = mailroom;
  const deployed = mailroom.deployed ?? resourcesInMemory(directory);
  const deployment = {
    terminal: createTerminal(io, json),
    clock,
    clockIsTrusted: true,
    isLocal: mailroom.isLocal ?? false,
    region: 'eu-west-1',
    directory,
    table,
    stored: mailroom.stored ?? dynamoRows(table),
    inboxChanges: mailroom.inboxChanges,
    database: mailroom.database,
    queues,
    resources: deployed.resources,
    stacks: () => deployed.deps,
    enableMapping: deployed.enableMapping,
    deployedFunction: async (name: string) =>
      mailroom.functionOf === undefined ? healthyFunction : mailroom.functionOf(name),
    clients: {
      cloudFormation: mailroom.cloudFormation,
      lambda: {
        send: async ({ input }: InvokeCommand) => {
          const isSweep = input.FunctionName === directory.mailroom.sweepFunction;
          const invoke = isSweep ? mailroom.invokeSweep : mailroom.invoke;
          const answer = await invoke(JSON.parse(String(input.Payload)));
          return { Payload: Buffer.from(JSON.stringify(answer)) };
        },
      },
    },
    operator: async () => 'arn:aws:sts::111122223333:assumed-role/ops/ada',
    commandLine: (command: string) => `npx cdk-mailroom ${command} --stage dev`,
    awsLine: (command: string) => `aws ${command} --region eu-west-1`,
    consumer: (name: string) => consumerNamed(directory, name),
  };
  return deployment as unknown as Deployment;
}
