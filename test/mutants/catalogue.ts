import { auditMutants } from './audit.ts';
import { auditVerdictMutants } from './audit-verdict.ts';
import { consumeClaimMutants } from './consume-claims.ts';
import { consumeConditionMutants } from './consume-conditions.ts';
import { consumeEffectMutants } from './consume-effects.ts';
import { consumeHandlerMutants } from './consume-handlers.ts';
import { consumeOutcomeMutants } from './consume-outcomes.ts';
import { consumeRunMutants } from './consume-runs.ts';
import { consumeTransitionMutants } from './consume-transitions.ts';
import { consumeTurnMutants } from './consume-turns.ts';
import type { Mutant } from './mutant.ts';
import { operateMutants } from './operate.ts';
import { relayPublishMutants } from './relay-publish.ts';
import { relayRowMutants } from './relay-rows.ts';
import { relayStreamMutants } from './relay-stream.ts';
import { relaySweepMutants } from './relay-sweep.ts';
import { relaySweepPassMutants } from './relay-sweep-pass.ts';
import { resendMutants } from './resend.ts';
import { writeMutants } from './write.ts';

/** All mutants, in the order in which an event passes the stages. */
export const MUTANTS: readonly Mutant[] = [
  ...writeMutants,
  ...relayRowMutants,
  ...relayPublishMutants,
  ...relayStreamMutants,
  ...relaySweepMutants,
  ...relaySweepPassMutants,
  ...consumeClaimMutants,
  ...consumeConditionMutants,
  ...consumeTransitionMutants,
  ...consumeTurnMutants,
  ...consumeRunMutants,
  ...consumeHandlerMutants,
  ...consumeOutcomeMutants,
  ...consumeEffectMutants,
  ...auditMutants,
  ...auditVerdictMutants,
  ...operateMutants,
  ...resendMutants,
];
