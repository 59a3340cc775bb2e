import type { RedriveTamper } from './redrive-scenarios.ts';
import type { Hole } from './relay-holes.ts';

/** The rules by which a redrive loses no message that was passed over, one by one. */
export const REDRIVE_HOLES: readonly Hole<RedriveTamper>[] = [
  {
    rule: 'the dead letter of an ordered message stays until its message has ended',
    where: 'beside an operator who skips its number',
    tamper: { judged: (judged) => ({ ...judged, isOrdered: false }) },
    found: /never ran was deleted/,
  },
  {
    rule: 'a superseded message is not done',
    where: 'beside an operator who skips its number',
    tamper: { progress: (progress) => (progress.state === 'superseded' ? { state: 'done' } : progress) },
    found: /never ran was deleted/,
  },
  {
    rule: 'a message whose number was passed over is not handled',
    where: 'beside a later number',
    tamper: {
      judged: (judged) => (judged.verdict === 'superseded' ? { ...judged, verdict: 'handled' } : judged),
    },
    found: /never ran was deleted/,
  },
];
