import type { Budget, Scheduler, World } from './actor.ts';
import { callKey, createSchedule, frozenKey, hash } from './schedule.ts';
import { addActor } from './scheduled-actor.ts';
import { transitions } from './transitions.ts';

/** The number of steps after which a schedule is considered an endless loop. */
const STEPS_MAX = 3_000;

/** Creates a scheduler. @param start - the true time at the start, in epoch milliseconds */
export function createScheduler(start: number): Scheduler {
  const schedule = createSchedule(start);
  const { time } = schedule;
  const crashes: string[] = [];
  const spent = { faults: 0, stalls: 0 };
  let violation: string | undefined;

  function stateKey(world: World, left: Budget): string {
    const parts = [
      time.now() - schedule.start,
      left.faults,
      left.stalls,
      ...schedule.actors.map(({ history, skewMs, draws }) => `${history}:${skewMs}:${draws}`),
      ...schedule.actors.map(({ frozen }) => (frozen === undefined ? '' : frozenKey(frozen))),
      ...schedule.late.map(({ of }) => of),
      ...schedule.pendings.map(callKey),
      ...time.wakes().toSorted((a, b) => a - b),
      world.state(left),
    ];
    return hash(parts.join('\n'));
  }

  return {
    now: time.now,
    actor: (name) => addActor(schedule, name),
    timeline: schedule.timeline,
    crashes,
    spent: () => ({ ...spent }),
    violated: () => violation,
    run: async (world, guide, budget) => {
      for (let steps = 0; steps < STEPS_MAX; steps += 1) {
        await time.quiet();
        violation ??= world.violation();
        if (violation !== undefined) {
          for (const { actor: state, call } of schedule.pendings)
            schedule.note(state.name, `is about to ${call.label}`);
          return 'violated';
        }
        if (schedule.pendings.length === 0 && schedule.late.length === 0) {
          const wakes = time.wakes();
          if (wakes.length === 0) return 'over';
          await time.passTo(Math.min(...wakes));
          continue;
        }
        const left = {
          faults: Math.max(0, budget.faults - spent.faults),
          stalls: Math.max(0, budget.stalls - spent.stalls),
        };
        const ways = transitions(schedule, world, left);
        const chosen =
          ways.length === 1
            ? 0
            : guide.choose(
                ways.length,
                () => stateKey(world, left),
                ways[0]?.label ?? '',
                () => ways.map(({ actor, label }) => `${actor}: ${label}`),
              );
        const way = ways[chosen];
        if (way === undefined) return 'merged';
        spent.faults += way.fault;
        spent.stalls += way.stall;
        if (way.crash !== undefined) crashes.push(way.crash);
        schedule.note(way.actor, way.label);
        await way.take();
      }
      violation = `The system does not settle: work is left after ${STEPS_MAX} steps`;
      return 'violated';
    },
  };
}
