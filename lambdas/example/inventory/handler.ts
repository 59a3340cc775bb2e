import { lambdaConsumer } from '../../runtime/index.ts';
import { reserveStock } from './reserve-stock.ts';

/** The consumer `inventory`. */
export const handler = lambdaConsumer(({ table }) => [reserveStock({ table })]);
