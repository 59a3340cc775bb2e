import { busKinds } from './bus-kinds.ts';
import { functionKinds } from './function-kinds.ts';
import { queueKinds } from './queue-kinds.ts';
import type { ResourceKind } from './resource-kind.ts';
import { storedKinds } from './stored-kinds.ts';

/** The kinds by type. Others are not compared. */
export const KINDS: Readonly<Record<string, ResourceKind>> = {
  ...functionKinds,
  ...queueKinds,
  ...busKinds,
  ...storedKinds,
};
