import type { Deployment } from '../../../../../cli/deployment/deployment.ts';
import { dynamoRows } from '../../../../../cli/deployment/dynamo-rows.ts';
import { createLive } from '../../../../../cli/page/server/live.ts';
import type { Flow, LiveMessage } from '../../../../../cli/page/server/protocol.ts';
import type { Handler } from '../../../../../lambdas/runtime/consume/handler.ts';
import type { Table } from '../../../../../lambdas/runtime/store/table.ts';
import { capturedIo } from '../../../../support/captured-io.ts';
import { mailroomInMemory } from '../../support/mailroom-in-memory.ts';
import { memoryDeployment } from '../../support/memory-deployment.ts';
import { resourcesInMemory } from '../../support/resources-in-memory.ts';
import { fine } from '../../support/why-rig.ts';

/** The kinds of reads that the rig counts and fails. */
export type Read = 'outbox' | 'states' | 'depth' | 'sweep' | 'wiring';

/** A Mailroom in memory, its live state, and a tab that can be opened and closed. */
export function liveRig(handlers: readonly Handler[] = [fine]) {
  const mailroom = mailroomInMemory(handlers);
  const deployed = resourcesInMemory();
  const deployment = memoryDeployment({ ...mailroom, deployed }, capturedIo().io, {});
  const { clock } = mailroom;
  const reads: Record<Read, number> = { outbox: 0, states: 0, depth: 0, sweep: 0, wiring: 0 };
  const faults = new Map<Read, Error>();
  /** A read waits for its gate. */
  const gates = new Map<Read, Promise<void>>();
  /** Counts a read, and fails it if a fault is set. */
  function counted<Args extends readonly unknown[], Result>(
    kindOf: (...args: NoInfer<Args>) => Read | undefined,
    read: (...args: Args) => Promise<Result>,
  ) {
    return async (...args: Args): Promise<Result> => {
      const kind = kindOf(...args);
      if (kind !== undefined) {
        reads[kind] += 1;
        await gates.get(kind);
        const fault = faults.get(kind);
        if (fault !== undefined) throw fault;
      }
      return read(...args);
    };
  }
  const { table, queues } = mailroom;
  const read: Table = {
    ...table,
    get: counted(() => 'sweep', table.get),
    // Only the cursor begins in the middle of a partition.
    query: counted(({ cursor }) => (cursor === undefined ? undefined : 'outbox'), table.query),
    getEach: counted(() => 'states', table.getEach),
  };
  const watched: Deployment = {
    ...deployment,
    table: read,
    stored: dynamoRows(read),
    queues: { ...queues, depth: counted(() => 'depth', queues.depth) },
    resources: { ...deployed.resources, hasBus: counted(() => 'wiring', deployed.resources.hasBus) },
  };
  const live = createLive(watched);

  /** Opens a tab. */
  function open() {
    const messages: LiveMessage[] = [];
    const close = live.subscribe((message) => messages.push(message));
    const flows = () => messages.flatMap((message) => (message.kind === 'flow' ? [message.flow] : []));
    const flow = (): Flow => {
      const last = flows().at(-1);
      if (last === undefined) throw new Error('No flow was sent');
      return last;
    };
    return { messages, close, flows, flow };
  }

  return {
    ...mailroom,
    deployed,
    live,
    faults,
    gates,
    open,
    /** The reads since the call before. */
    take: () => {
      const taken = { ...reads };
      for (const kind of Object.keys(reads) as Read[]) reads[kind] = 0;
      return taken;
    },
    /** Ends the present minute, so that an interval of a few seconds lies within one. */
    toMidMinute: () => clock.advance(90_000 - (clock.now() % 60_000)),
  };
}
