import { isFinal } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { placeOf } from '../../deployment/place.ts';
import { applyResolution } from './applied-resolution.ts';
import { type DecisionChange, type DecisionPlan, decided, ended, withWholeId } from './message-decision.ts';
import { type Resolution, readResolution } from './resolution.ts';
import { resolutionPlan } from './resolution-plan.ts';

interface ResolvePlan extends DecisionPlan {
  readonly resolution: Resolution;
}

/** `mailroom messages resolve`. */
export const resolve: DecisionChange<ResolvePlan> = {
  plan: async (deployment, given) => {
    const decision = await withWholeId(deployment, given);
    const resolution = await readResolution(deployment, decision);
    const { state, fix } = resolution;
    const planned = isFinal(state) ? ended(decision, state.row, fix) : resolutionPlan(decision, resolution);
    return { place: await placeOf(deployment), decision, planned, resolution };
  },
  apply: async (deployment, { decision, resolution }, { reason }) => {
    const { state, fix } = resolution;
    const isOver = isFinal(state);
    if (isOver && fix === undefined) return ended(decision, state.row);
    return applyResolution(deployment, { ...decision, reason }, resolution);
  },
  ...decided,
};
