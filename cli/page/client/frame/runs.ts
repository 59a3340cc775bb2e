import type { Run } from '../../server/protocol.ts';

/**
 * Adds the state of a run to the list, the newest run first. A run that is over does not run again: the response to a request may
 * arrive after a message of the live stream that is newer.
 */
export function withRun(runs: readonly Run[], run: Run): readonly Run[] {
  const known = runs.find(({ id }) => id === run.id);
  if (known !== undefined && known.state !== 'running' && run.state === 'running') return runs;
  const others = runs.filter(({ id }) => id !== run.id);
  return [run, ...others].sort((a, b) => b.startedAt - a.startedAt);
}
