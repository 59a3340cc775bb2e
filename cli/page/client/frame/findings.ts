import type { StatusDocument } from '../../server/protocol.ts';

/** The one line of the verdict: the tab's title and the page's live region. */
export interface Headline {
  readonly is: 'ok' | 'look' | 'broken' | 'idle';
  /** E.g. `2 broken`. */
  readonly text: string;
}

/** The verdict of a status in a few words. @param status - `null` before the first reading */
export function headlineOf(status: Pick<StatusDocument, 'state' | 'findings'> | null): Headline {
  if (status === null) return { is: 'idle', text: 'Reading' };
  const { state, findings } = status;
  const broken = findings.filter((finding) => finding.state === 'broken').length;
  if (state === 'broken') return { is: 'broken', text: `${broken} broken` };
  if (state === 'look') return { is: 'look', text: `${findings.length - broken} to look at` };
  return { is: 'ok', text: 'All is well' };
}
