import { time } from '../../../terminal/times.ts';
import { many, preciseTime } from '../frame/format.ts';
import { State } from '../frame/state.tsx';
import { Name, Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { type TimelineRow, timelineOf } from './timeline.ts';
import { type EventReport, isBad } from './waterfall.ts';

/** The story in words, in order of time. */
export function Timeline({ events }: { readonly events: readonly EventReport[] }) {
  return (
    <section class="panel timeline">
      <Table
        caption="Timeline"
        columns={events.length > 1 ? COLUMNS : COLUMNS.filter(({ title }) => title !== 'Event')}
        rows={timelineOf(events)}
        keyOf={({ key }) => key}
        empty="Nothing is stored about this event."
      />
    </section>
  );
}

const COLUMNS: readonly Column<TimelineRow>[] = [
  { title: 'Time (UTC)', cell: ({ line: { at } }) => <Moment at={at} /> },
  { title: 'Event', cell: ({ type }) => <Name text={type} clip={60} /> },
  { title: 'Where', cell: ({ line: { consumer } }) => <Name text={consumer ?? 'outbox'} /> },
  {
    title: 'What',
    cell: ({ line, alike }) => {
      const text = <Stored text={line.text} />;
      return (
        <div>
          {isBad(line) ? <State is="broken">{text}</State> : text}
          {alike.length > 0 && <Alike lines={alike} />}
        </div>
      );
    },
  },
];

function Moment({ at }: Pick<EventReport['story'][number], 'at'>) {
  if (at === null) return <span class="quiet-text">no time</span>;
  return (
    <span class="clock" title={time(at)}>
      {preciseTime(at)}
    </span>
  );
}

/** The attempts that a row stands for, on a click. */
function Alike({ lines }: { readonly lines: TimelineRow['alike'] }) {
  return (
    <details>
      <summary>{many(lines.length, 'earlier attempt')} ended alike</summary>
      <ul>
        {lines.map(({ at, text }, index) => (
          <li key={index}>
            <Moment at={at} /> <Stored text={text} />
          </li>
        ))}
      </ul>
    </details>
  );
}
