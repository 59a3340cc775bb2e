import type { Flow } from '../../server/protocol.ts';
import { Ago } from '../frame/clocks.tsx';
import { count } from '../frame/format.ts';
import { routeTo } from '../frame/route.ts';
import { Name } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';

type AtSource = NonNullable<Flow['status']>['sourceConsumers'][string] & { readonly name: string };

/** The consumers of other sources than SQS, as `status` lists them; nothing without one. */
export function SourceConsumers({ status }: Pick<Flow, 'status'>) {
  const rows = Object.entries(status?.sourceConsumers ?? {}).map(([name, one]) => ({ name, ...one }));
  if (rows.length === 0) return null;
  return (
    <section class="panel">
      <Table
        caption="Consumers of other sources"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ name }) => name}
        empty=""
      />
    </section>
  );
}

const COLUMNS: readonly Column<AtSource>[] = [
  { title: 'Consumer', cell: ({ name }) => <Name text={name} /> },
  { title: 'Source', cell: ({ from }) => <Name text={from} /> },
  { title: 'Failed', isNumber: true, cell: ({ name, failed }) => listed(name, 'failed', failed) },
  { title: 'Rejected', isNumber: true, cell: ({ name, rejected }) => listed(name, 'rejected', rejected) },
  { title: 'Seen', cell: ({ seenAt }) => <Ago at={seenAt} /> },
];

function listed(consumer: string, state: 'failed' | 'rejected', number: number) {
  return number === 0 ? count(0) : <a href={routeTo('messages', '', { state, consumer })}>{count(number)}</a>;
}
