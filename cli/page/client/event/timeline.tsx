import { time } from '../../../terminal/times.ts';
import { preciseTime } from '../frame/format.ts';
import { State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { isBad } from './waterfall.ts';
import type { EventReport } from './why-document.ts';

interface TimelineRow {
  readonly key: string;
  readonly order: number;
  readonly type: string;
  readonly line: EventReport['story'][number];
}

const COLUMNS: readonly Column<TimelineRow>[] = [
  {
    title: 'Time (UTC)',
    cell: ({ line: { at } }) =>
      at === null ? <span class="quiet-text">no time</span> : <span title={time(at)}>{preciseTime(at)}</span>,
  },
  { title: 'Event', cell: ({ type }) => <Stored text={type} clip={60} /> },
  { title: 'Where', cell: ({ line: { consumer } }) => consumer ?? 'outbox' },
  {
    title: 'What',
    cell: ({ line }) =>
      isBad(line) ? (
        <State is="broken">
          <Stored text={line.text} />
        </State>
      ) : (
        <Stored text={line.text} />
      ),
  },
];

/** The story in words, in order of time. */
export function Timeline({ events }: { readonly events: readonly EventReport[] }) {
  return (
    <section class="panel">
      <Table
        caption="Timeline"
        columns={events.length > 1 ? COLUMNS : COLUMNS.filter(({ title }) => title !== 'Event')}
        rows={rowsOf(events)}
        keyOf={({ key }) => key}
        empty="Nothing is stored about this event."
      />
    </section>
  );
}

/** A line without a time follows the one before it. */
function rowsOf(events: readonly EventReport[]): TimelineRow[] {
  return events
    .flatMap(({ eventId, type, story }) => {
      let order = 0;
      return story.map((line, index) => {
        order = line.at ?? order;
        return { key: `${eventId} ${index}`, order, type: type ?? 'unreadable', line };
      });
    })
    .sort((a, b) => a.order - b.order);
}
