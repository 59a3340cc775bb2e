import { bridgeMutants } from './bridge.ts';
import { consumeMessagesMutants } from './consume-messages.ts';
import { consumeRunsMutants } from './consume-runs.ts';
import { deadLettersMutants } from './dead-letters.ts';
import type { Mutant } from './mutant.ts';
import { operationsMutants } from './operations.ts';
import { orderMutants } from './order.ts';
import { postgresMutants } from './postgres.ts';
import { relayMutants } from './relay.ts';
import { sourceMutants } from './sources.ts';
import { storeInboxMutants } from './store-inbox.ts';
import { storeOutboxMutants } from './store-outbox.ts';
import { writeMutants } from './write.ts';

/** All mutants, in the order in which an event passes the stages. */
export const MUTANTS: readonly Mutant[] = [
  ...writeMutants,
  ...storeOutboxMutants,
  ...relayMutants,
  ...postgresMutants,
  ...storeInboxMutants,
  ...consumeMessagesMutants,
  ...consumeRunsMutants,
  ...orderMutants,
  ...bridgeMutants,
  ...sourceMutants,
  ...operationsMutants,
  ...deadLettersMutants,
];
