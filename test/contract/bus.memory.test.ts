import { memoryBus } from '../../testing/index.ts';
import { describeBus } from './bus-contract.ts';

describeBus('the bus in memory', async () => {
  const bodies: string[] = [];
  const bus = memoryBus();
  bus.routeTo({ send: (body) => bodies.push(body) });
  return { subject: { bus, bodies: async () => bodies }, remove: async () => undefined };
});
