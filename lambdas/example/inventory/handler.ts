import { lambdaConsumer } from '../../runtime/index.ts';
import { UNPAID } from '../events.ts';
import { releaseStock } from './release-stock.ts';
import { reserveStock } from './reserve-stock.ts';

/** The consumer `inventory`. */
export const handler = lambdaConsumer(({ table }) => [
  reserveStock({ table }),
  ...UNPAID.map((unpaid) => releaseStock({ table }, unpaid)),
]);
