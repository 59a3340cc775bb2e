import {
  GetEventSourceMappingCommand,
  ListEventSourceMappingsCommand,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';
import { EXIT } from '../../cli/terminal/io.ts';
import type { DeployedSystem } from '../deployed-system.ts';
import { passed, type VerifyCheck } from './check.ts';

const CUSTOMERS = 'verify-mapping';
const ORDERS = 2;

/** A consumer whose event source mapping is off. */
export const mappingCheck: VerifyCheck = {
  name: "a consumer's mapping is off: its messages wait, status reports it; on again: processed once",
  run: async (system) => {
    const { until, read, mailroom, placeOrder, confirmed } = system;
    const mapping = await mappingOf(system);
    const orderIds: string[] = [];
    await mapping.set(false);
    try {
      for (let n = 0; n < ORDERS; n += 1) orderIds.push(await placeOrder(CUSTOMERS));
      await until('the messages wait in the queue of notifications', async () => {
        const { orders, queued } = await read(CUSTOMERS);
        return orders.every(({ payment }) => payment === 'captured') && queued >= ORDERS;
      });
      const { emails } = await read(CUSTOMERS);
      if (emails.size > 0) throw new Error('Notifications has mailed, although its mapping is off');
      await until('mailroom status reports the mapping', async () => {
        const { code, out } = await mailroom('status');
        return code === EXIT.attention && /mapping/i.test(out);
      });
    } finally {
      await mapping.set(true);
    }
    await confirmed(CUSTOMERS, orderIds);
    return passed(`${ORDERS} orders waited, and were mailed once`);
  },
};

/** The mapping of notifications, whose handler no other check waits for. */
async function mappingOf({ lambda, consumer, until }: DeployedSystem) {
  const { EventSourceMappings: [mapping] = [] } = await lambda.send(
    new ListEventSourceMappingsCommand({ FunctionName: consumer('notifications').function }),
  );
  if (mapping?.UUID === undefined) throw new Error('The function of notifications has no mapping');
  const { UUID } = mapping;
  return {
    /** Resolves when it has taken effect, or, if the run was stopped, when it was requested. */
    set: async (on: boolean): Promise<void> => {
      await lambda.send(new UpdateEventSourceMappingCommand({ UUID, Enabled: on }));
      await until(`the mapping is ${on ? 'on' : 'off'}`, async () => {
        const { State } = await lambda.send(new GetEventSourceMappingCommand({ UUID }));
        return State === (on ? 'Enabled' : 'Disabled');
      });
    },
  };
}
