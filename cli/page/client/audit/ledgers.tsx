import type { ShownAudit } from '../documents.ts';
import { count } from '../frame/format.ts';
import { State } from '../frame/state.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { Name } from '../readings/reading-bar.tsx';

type ShownLedger = ShownAudit['consumers'][string] & { readonly consumer: string };

/** The counts that are shown in words if they are not 0. */
const OTHERS = [
  ['inFlight', 'in flight'],
  ['failed', 'failed'],
  ['rejected', 'rejected'],
  ['discarded', 'discarded'],
  ['unreadable', 'unreadable'],
  ['deadLetters', 'dead-lettered'],
  ['waiting', 'waiting'],
  ['unproven', 'unproven'],
] as const;

/** The ledger of each consumer: what it should have received, and where each event is. */
export function Ledgers({ consumers }: { readonly consumers: ShownAudit['consumers'] }) {
  return (
    <Table
      caption="By consumer"
      columns={COLUMNS}
      rows={Object.entries(consumers).map(([consumer, counts]) => ({ consumer, ...counts }))}
      keyOf={({ consumer }) => consumer}
      empty="No consumers."
    />
  );
}

const COLUMNS: readonly Column<ShownLedger>[] = [
  { title: 'Consumer', cell: ({ consumer }) => <Name text={consumer} /> },
  { title: 'Expected', isNumber: true, cell: ({ expected }) => count(expected) },
  { title: 'Processed', isNumber: true, cell: ({ processed }) => count(processed) },
  { title: 'Missing', isNumber: true, cell: ({ missing }) => <Bad number={missing} /> },
  { title: 'Inconclusive', isNumber: true, cell: ({ inconclusive }) => <Bad number={inconclusive} /> },
  {
    title: 'Other',
    cell: (ledger) => (
      <span>
        {OTHERS.filter(([name]) => ledger[name] > 0)
          .map(([name, words]) => `${count(ledger[name])} ${words}`)
          .join(', ') || '–'}
      </span>
    ),
  },
];

function Bad({ number }: { readonly number: number }) {
  return number > 0 ? <State is="broken">{count(number)}</State> : <span>0</span>;
}
