import {
  GetFunctionConcurrencyCommand,
  GetFunctionConfigurationCommand,
  InvokeCommand,
  LambdaClient,
  ListEventSourceMappingsCommand,
} from '@aws-sdk/client-lambda';
import { describe, expect, test } from 'vitest';
import { awsResources } from '../../../cli/deployment/aws-resources.ts';
import type { Clients } from '../../../cli/deployment/clients.ts';
import { readFunction } from '../../../cli/deployment/deployed-function.ts';
import { checkBodies } from '../../../cli/deployment/invoke.ts';
import { examine } from '../../../cli/reports/findings/examination.ts';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { STUB_CONFIGURATION } from '../../support/stub-client.ts';
import { mailroomInMemory, directory as plain, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory, wiringOf } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { fine } from './support/why-rig.ts';

const aliased = { ...worker, alias: 'live' };
const directory: Directory = {
  ...plain,
  consumers: plain.consumers.map((consumer) => (consumer.name === worker.name ? aliased : consumer)),
};
const LIVE = `${worker.function}:live`;

/** A client that records which function each call names, and sends nothing. */
function recordingClient(answer: object = {}) {
  const calls: [string, string | undefined][] = [];
  const client = new LambdaClient(STUB_CONFIGURATION);
  client.send = async (command: { constructor: { name: string }; input: { FunctionName?: string } }) => {
    calls.push([command.constructor.name, command.input.FunctionName]);
    return answer;
  };
  return { calls, client };
}

describe('a consumer behind an alias', () => {
  test('is healthy for status and doctor if the mapping, the settings and the role are those of the alias', async () => {
    expect((await wiringOf(resourcesInMemory(directory).resources, directory)()).problems).toEqual([]);
    expect((await examine(resourcesInMemory(directory).deps)).problems).toEqual([]);
  });

  test('has no mapping if only the function has one', async () => {
    const { resources, mappings } = resourcesInMemory(directory);
    mappings.set(worker.function, mappings.get(LIVE) ?? []);
    mappings.delete(LIVE);
    const { problems } = await wiringOf(resources, directory)();
    expect(problems).toMatchObject([
      {
        part: worker.name,
        problem: 'no-mapping',
        text: expect.stringContaining(`the function ${LIVE} has no`),
      },
    ]);
  });

  test('never runs if its function may not: concurrency is reserved for the function, not for the alias', async () => {
    const { resources, reserved } = resourcesInMemory(directory);
    reserved.set(worker.function, 0);
    const { problems } = await wiringOf(resources, directory)();
    expect(problems).toMatchObject([
      {
        problem: 'concurrency-zero',
        fix: ['aws', 'lambda', 'delete-function-concurrency', '--function-name', worker.function],
      },
    ]);
  });

  test('checks messages with the code of the alias', async () => {
    const { calls, client } = recordingClient({ Payload: Buffer.from('{"checks":[{}]}') });
    await checkBodies(client, aliased, ['a body']);
    expect(calls).toEqual([[InvokeCommand.name, LIVE]]);
  });

  test('is described by the settings of the alias', async () => {
    const { calls, client } = recordingClient({ EventSourceMappings: [] });
    const resources = awsResources({ lambdaReads: client } as unknown as Clients, 'table', systemClock);
    expect((await readFunction(resources, worker.function, 'live'))?.logGroup).toBe(
      `/aws/lambda/${worker.function}`,
    );
    expect(Object.fromEntries(calls)).toEqual({
      [GetFunctionConfigurationCommand.name]: LIVE,
      [GetFunctionConcurrencyCommand.name]: worker.function,
      [ListEventSourceMappingsCommand.name]: LIVE,
    });
  });

  test('is shown with its alias', async () => {
    const mailroom = { ...mailroomInMemory([fine]), directory };
    const { out } = await runInMemory(mailroom, ['describe', worker.name]);
    expect(out).toMatch(new RegExp(`^function +${LIVE}$`, 'm'));
    const json = await runInMemory(mailroom, ['describe', worker.name, '--json']);
    expect(JSON.parse(json.out)).toMatchObject({ function: worker.function, alias: 'live' });
  });
});
