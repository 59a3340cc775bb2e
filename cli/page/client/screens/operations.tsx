import { useEffect, useState } from 'preact/hooks';
import type { ReadingDocuments } from '../../server/readings.ts';
import { At } from '../frame/clocks.tsx';
import { Button, Choice } from '../frame/controls.tsx';
import { many } from '../frame/format.ts';
import { ReadingHead, useKeptReading } from '../frame/reading.tsx';
import { Notice, State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';

const RANGES = [
  ['1d', 'last day'],
  ['7d', 'last 7 days'],
  ['30d', 'last 30 days'],
  ['400d', 'all that is kept, 400 days'],
] as const;

/** The changes that operators made: when, who, what and why; newest first. */
export function OperationsScreen() {
  const [since, setSince] = useState<(typeof RANGES)[number][0]>('7d');
  const used = useKeptReading('operations');
  const { reading, isReading, read } = used;
  useEffect(() => read({ since }), [since, read]);
  return (
    <>
      <ReadingHead
        used={used}
        title="Operations log"
        about="The changes that operators made: who, what and why."
        answer={reading?.document && <Answer document={reading.document} />}
        what="the operations log, month by month"
      >
        <Choice label="Range" value={since} options={RANGES} onChange={setSince} />
        <Button isDisabled={isReading} onClick={() => read({ since })}>
          Read again
        </Button>
      </ReadingHead>
      {reading?.document && (
        <section class="panel stack" aria-label="Result">
          <Result document={reading.document} />
        </section>
      )}
    </>
  );
}

type ShownOperations = ReadingDocuments['operations'];

interface OperationsProps {
  readonly document: ShownOperations;
}

/** The number of changes. */
function Answer({ document: { operations, more } }: OperationsProps) {
  if (operations.length === 0) return <State is="ok">No operator changed anything in this range</State>;
  return (
    <State is="idle">
      {more && 'At least '}
      {many(operations.length, 'change')}
    </State>
  );
}

function Result({ document: { operations, more, unreadable } }: OperationsProps) {
  return (
    <>
      {more && <Notice is="look" title="Not all changes are listed. Choose a shorter range." />}
      {unreadable > 0 && <Notice is="look" title={`Unreadable entries in these months: ${unreadable}.`} />}
      <Table
        caption="Newest first"
        columns={COLUMNS}
        rows={operations}
        keyOf={({ at, command, subject }) => `${at} ${command} ${subject}`}
        empty="No operator changed anything in this range."
      />
    </>
  );
}

const COLUMNS: readonly Column<ShownOperations['operations'][number]>[] = [
  { title: 'When', cell: ({ at }) => <At at={at} /> },
  { title: 'Who', cell: ({ by }) => <Stored text={by} clip={120} /> },
  {
    title: 'What',
    cell: ({ command, subject }) => (
      <span>
        <strong>
          <Stored text={command} />
        </strong>{' '}
        <Stored text={subject} clip={300} />
      </span>
    ),
  },
  { title: 'Why', cell: ({ reason }) => <Stored text={reason} clip={500} /> },
];
