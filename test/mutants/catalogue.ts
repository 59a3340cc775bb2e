import { auditMutants } from './audit.ts';
import { auditVerdictMutants } from './audit-verdict.ts';
import { consumeClaimMutants } from './consume-claims.ts';
import { consumeConditionMutants } from './consume-conditions.ts';
import { consumeEffectMutants } from './consume-effects.ts';
import { consumeForeignMutants } from './consume-foreign.ts';
import { consumeHandlerMutants } from './consume-handlers.ts';
import { consumeLeasedRunMutants } from './consume-leased-runs.ts';
import { consumeOnceMutants } from './consume-once.ts';
import { consumeOutageMutants } from './consume-outages.ts';
import { consumeOutcomeMutants } from './consume-outcomes.ts';
import { consumeRunMutants } from './consume-runs.ts';
import { consumeTransactionalMutants } from './consume-transactional.ts';
import { consumeTransitionMutants } from './consume-transitions.ts';
import { consumeTurnMutants } from './consume-turns.ts';
import { metricMutants } from './metrics.ts';
import type { Mutant } from './mutant.ts';
import { operateMutants } from './operate.ts';
import { relayProducerMutants } from './relay-producers.ts';
import { relayPublishMutants } from './relay-publish.ts';
import { relayRowMutants } from './relay-rows.ts';
import { relayStreamMutants } from './relay-stream.ts';
import { relaySweepMutants } from './relay-sweep.ts';
import { relaySweepPassMutants } from './relay-sweep-pass.ts';
import { resendMutants } from './resend.ts';
import { writeMutants } from './write.ts';
import { writeAtOnceMutants } from './write-at-once.ts';

/** All mutants, in the order in which an event passes the stages. */
export const MUTANTS: readonly Mutant[] = [
  ...writeMutants,
  ...writeAtOnceMutants,
  ...relayRowMutants,
  ...relayPublishMutants,
  ...relayStreamMutants,
  ...relayProducerMutants,
  ...relaySweepMutants,
  ...relaySweepPassMutants,
  ...consumeClaimMutants,
  ...consumeConditionMutants,
  ...consumeTransitionMutants,
  ...consumeForeignMutants,
  ...consumeTurnMutants,
  ...consumeOutageMutants,
  ...consumeRunMutants,
  ...consumeHandlerMutants,
  ...consumeLeasedRunMutants,
  ...consumeOutcomeMutants,
  ...consumeTransactionalMutants,
  ...consumeOnceMutants,
  ...consumeEffectMutants,
  ...auditMutants,
  ...auditVerdictMutants,
  ...operateMutants,
  ...resendMutants,
  ...metricMutants,
];
