import { expect, it } from 'vitest';
import { type Commit, compared } from './quiet-producers.ts';

/** A database whose notes and events are these. */
function serverWith(notes: readonly string[], aggregates: readonly string[]) {
  const query = async (text: string) => ({
    rows: (text === 'notes' ? notes : aggregates).map((id) => ({ id })),
  });
  return { notes: 'notes', aggregates: 'aggregates', database: { query } as never };
}

const COMMITS: readonly Commit[] = [
  { id: 'a', hasEvent: true, answer: 'committed' },
  { id: 'b', hasEvent: false, answer: 'committed' },
  { id: 'c', hasEvent: true, answer: 'failed' },
  { id: 'd', hasEvent: true, answer: 'rolled back' },
  { id: 'e', hasEvent: true, answer: 'unknown' },
];

it('answers that agree with the rows are not counted, whatever became of an unknown one', async () => {
  const clean = {
    commits: 5,
    rolledBack: 1,
    falselyCommitted: 0,
    falselyFailed: 0,
    lost: 0,
    ghosts: 0,
    unknown: 1,
  };
  expect(await compared(serverWith(['a', 'b'], ['a']), COMMITS)).toEqual(clean);
  expect(await compared(serverWith(['a', 'b', 'e'], ['a', 'e']), COMMITS)).toEqual(clean);
});

it('every answer that the rows contradict is counted, and every event that is lost or has no row', async () => {
  expect(await compared(serverWith(['b'], []), COMMITS)).toMatchObject({ falselyCommitted: 1, lost: 0 });
  expect(await compared(serverWith(['a', 'b'], []), COMMITS)).toMatchObject({ falselyCommitted: 1, lost: 1 });
  expect(await compared(serverWith(['a', 'b', 'c'], ['a', 'c']), COMMITS)).toMatchObject({
    falselyFailed: 1,
  });
  expect(await compared(serverWith(['a', 'b', 'd'], ['a', 'd']), COMMITS)).toMatchObject({
    falselyFailed: 1,
  });
  expect(await compared(serverWith(['a', 'b'], ['a', 'd']), COMMITS)).toMatchObject({
    falselyFailed: 1,
    ghosts: 1,
  });
  expect(await compared(serverWith(['a', 'b', 'e'], ['a']), COMMITS)).toMatchObject({ lost: 1 });
});
