import type { EventReport, ReportLine } from './waterfall.ts';

/** A row of the timeline. */
export interface TimelineRow {
  readonly key: string;
  /** Epoch milliseconds: a line without a time follows the one before it. */
  readonly order: number;
  readonly type: string;
  readonly line: ReportLine;
  /** The attempts before it that ended alike, oldest first: they are one row with it. */
  readonly alike: readonly ReportLine[];
}

/** The stories of events in order of time, in which successive attempts that ended alike are one row: the last of them. */
export function timelineOf(
  events: readonly Pick<EventReport, 'eventId' | 'type' | 'story'>[],
): TimelineRow[] {
  const rows = events.flatMap(({ eventId, type, story }) => {
    const told: TimelineRow[] = [];
    // The consumers take turns in the story of an event.
    const latest = new Map<string | null, TimelineRow>();
    let order = 0;
    for (const [index, line] of story.entries()) {
      order = line.at ?? order;
      const before = latest.get(line.consumer);
      const isAlike = before !== undefined && line.cause !== undefined && before.line.cause === line.cause;
      const alike = isAlike ? [...before.alike, before.line] : [];
      const row = { key: `${eventId} ${index}`, order, type: type ?? 'unreadable', line, alike };
      if (isAlike) told.splice(told.indexOf(before), 1);
      told.push(row);
      latest.set(line.consumer, row);
    }
    return told;
  });
  return rows.sort((a, b) => a.order - b.order);
}
