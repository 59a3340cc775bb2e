import { answersOf, detailsOf } from '../../../reports/audit/audit-answers.ts';
import type { ShownAudit } from '../documents.ts';
import { count } from '../frame/format.ts';
import { State } from '../frame/state.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { Name } from '../readings/reading-bar.tsx';

type ShownLedger = ShownAudit['consumers'][string] & { readonly consumer: string };

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
  { title: 'Processed', isNumber: true, cell: (ledger) => count(answersOf(ledger).processed) },
  { title: 'Open', isNumber: true, cell: (ledger) => count(answersOf(ledger).open) },
  { title: 'Missing', isNumber: true, cell: (ledger) => <Bad number={answersOf(ledger).missing} /> },
  { title: 'Cannot tell', isNumber: true, cell: (ledger) => <Bad number={answersOf(ledger).cannotTell} /> },
  { title: 'Of these', cell: (ledger) => <span>{detailsOf(ledger).join(', ') || '–'}</span> },
];

function Bad({ number }: { readonly number: number }) {
  return number > 0 ? <State is="broken">{count(number)}</State> : <span>0</span>;
}
