import { required } from '../../demo/readings.ts';
import { runDemo } from '../../demo/run.ts';
import { callFunctionUrl } from '../../localstack/function-url.ts';
import { notShown, passed, type VerifyCheck } from './check.ts';

/** Orders per second: little enough for the concurrency of a new account. */
const RATE = 5;

/** The demo: orders, repeated requests and duplicate messages. */
export function ordersCheck(orders: number): VerifyCheck {
  return {
    name: 'orders, repeats and duplicates: nothing lost, nothing doubled',
    run: async ({ outputs, target, steps, signal, call }) => {
      const endpoint = target.endpoint ?? '';
      const receipt = await runDemo({ outputs, endpoint, orders, rate: RATE, steps, signal, call });
      if (receipt.problems.length > 0) throw new Error(receipt.problems.join('\n'));
      const { eventsPublished, duplicatesAbsorbed, commitToPublishedMs: ms } = receipt;
      return passed(
        `${receipt.orders} orders, ${eventsPublished} events, ${duplicatesAbsorbed} duplicates absorbed; ` +
          `published after ${ms.p50} ms (median), ${ms.p99} ms (p99)`,
      );
    },
  };
}

/** HTTP: the caller has no permission. */
const FORBIDDEN = 403;

/** The function URL refuses a caller without a signature. */
export const unsignedCheck: VerifyCheck = {
  name: 'the orders API refuses a request without a signature',
  run: async ({ outputs, target }) => {
    const url = new URL('orders/none', required(outputs, 'OrdersUrl'));
    const { status } = await callFunctionUrl(target.endpoint ?? url.origin, url);
    if (status === FORBIDDEN) return passed('it answered 403');
    if (target.endpoint !== undefined)
      return notShown(`the engine checks no signatures: it answered ${status}`);
    throw new Error(`It answered ${status} instead of 403: anybody can call it`);
  },
};
