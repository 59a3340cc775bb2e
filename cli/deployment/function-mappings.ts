import {
  type EventSourceMappingConfiguration,
  type LambdaClient,
  ListEventSourceMappingsCommand,
} from '@aws-sdk/client-lambda';

/** Reads the event source mappings of a function, or of an alias (`name:alias`). */
export type ReadMappings = (functionName: string) => Promise<readonly EventSourceMappingConfiguration[]>;

/**
 * Concurrent reads share one list of the account's mappings, which Lambda throttles to few requests per second. Where it has more than a
 * page of them, and for a function without one, its own are read.
 *
 * @param ofFunction - reads the mappings of one function
 */
export function sharedMappings(client: LambdaClient, ofFunction: ReadMappings): ReadMappings {
  let listing: Promise<readonly EventSourceMappingConfiguration[]> | undefined;
  const list = async () => {
    const { EventSourceMappings = [], NextMarker } = await client.send(
      new ListEventSourceMappingsCommand({}),
    );
    return NextMarker ? [] : EventSourceMappings;
  };
  return async (name) => {
    listing ??= list().finally(() => {
      listing = undefined;
    });
    const own = (await listing).filter(({ FunctionArn = '' }) => nameIn(FunctionArn) === name);
    return own.length > 0 ? own : ofFunction(name);
  };
}

/** `arn:aws:lambda:eu-west-1:111122223333:function:name:alias` names `name:alias`. */
function nameIn(arn: string): string {
  return arn.split(':').slice(6).join(':');
}
