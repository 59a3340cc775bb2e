import type { CrashCase } from './crash-cases.ts';

/** The crashes of a bridge, and the lost answer of its target. */
export const BRIDGE_CASES: readonly CrashCase[] = [
  {
    id: 'no-crash-bridge',
    part: 'bridge',
    title: 'No crash: a bridge',
    about: 'Claim, send, record with the answer of the target, acknowledgement.',
    turns: [],
  },
  {
    id: 'before-the-send',
    part: 'bridge',
    title: 'A bridge crashes before it sends',
    about: 'The target received nothing. The next receive takes over and sends the event.',
    turns: [{ take: /worker 1: send.*-> crash before/ }],
  },
  {
    id: 'after-the-send',
    part: 'bridge',
    title: 'A bridge crashes after its target stored the event',
    about: 'The inbox row does not show that, so the event is sent again, under the same event id.',
    turns: [{ take: /worker 1: send.*-> crash after/ }],
  },
  {
    id: 'answer-of-the-target-lost',
    part: 'bridge',
    title: "The answer of a bridge's target is lost",
    about: 'The message becomes FAILED and is sent again, under the same event id.',
    turns: [{ take: /worker 1: send.*-> the answer is lost$/ }],
  },
  {
    id: 'after-the-record',
    part: 'bridge',
    title: 'A bridge crashes after its record, before the acknowledgement',
    about: 'SQS redelivers the message. The inbox row is PROCESSED, so nothing is sent.',
    turns: [{ take: /worker 1: update .*PROCESSED -> crash after/ }],
  },
];
