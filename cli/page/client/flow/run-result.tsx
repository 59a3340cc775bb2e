import type { ComponentChildren } from 'preact';
import type { DemoReceipt } from '../../server/protocol.ts';
import { count, many } from '../frame/format.ts';
import { Icon } from '../frame/state.tsx';
import { LatencyChart, SecondsChart } from './run-chart.tsx';

/** The result of a run of the demo: whether anything was lost or duplicated, and how the run went. */
export function RunResult({ receipt }: { readonly receipt: DemoReceipt }) {
  const { headline, problems } = receipt;
  const is = problems.length === 0 ? 'ok' : 'broken';
  return (
    <section class="panel receipt" aria-label="Result of the run">
      <div class={`receipt-headline is-${is}`} role="status">
        <Icon name={is} />
        <h2>{headline}</h2>
      </div>
      {problems.length > 0 && (
        <ul class="receipt-problems">
          {problems.map((problem) => (
            <li key={problem}>{problem}</li>
          ))}
        </ul>
      )}
      <Totals receipt={receipt} />
      <div class="receipt-charts">
        <SecondsChart seconds={receipt.perSecond} />
        <LatencyChart receipt={receipt} />
      </div>
      <AllCounts receipt={receipt} />
    </section>
  );
}

function Totals({ receipt }: { readonly receipt: DemoReceipt }) {
  const { bridge } = receipt;
  const processed = Object.values(receipt.processed);
  return (
    <dl class="receipt-facts">
      <Total name="Orders" value={receipt.orders}>
        {count(receipt.confirmed)} confirmed, {count(receipt.cancelled)} cancelled
      </Total>
      <Total name="Events published" value={receipt.eventsPublished} />
      <Total name="Messages processed" value={processed.reduce((sum, n) => sum + n, 0)}>
        by {many(processed.length, 'consumer')}
      </Total>
      <Total name="Duplicates absorbed" value={receipt.duplicatesAbsorbed}>
        of {count(receipt.duplicatesSent)} sent
      </Total>
      <Total name="Charges" value={receipt.charges}>
        {count(receipt.doubleCharges)} double, {count(receipt.missingCharges)} missing
      </Total>
      <Total name="E-mails" value={receipt.emails} />
      {bridge && (
        <Total name={`At ${bridge.target}`} value={bridge.distinct}>
          of {count(bridge.sent)} events, {count(bridge.received - bridge.distinct)} duplicates
        </Total>
      )}
    </dl>
  );
}

interface TotalProps {
  readonly name: string;
  readonly value: number;
  readonly children?: ComponentChildren;
}

function Total({ name, value, children }: TotalProps) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="rate">{count(value)}</dd>
      {children !== undefined && <dd class="receipt-note">{children}</dd>}
    </div>
  );
}

function AllCounts({ receipt }: { readonly receipt: DemoReceipt }) {
  const counts: readonly (readonly [string, number])[] = [
    ...Object.entries(receipt.processed).map(([name, n]) => [`Processed by ${name}`, n] as const),
    ['Orders expired', receipt.expired],
    ['Expiries scheduled', receipt.scheduled],
    ['Expiries cancelled', receipt.timersCancelled],
    ['Payments rejected', receipt.rejected],
    ['Reports superseded', receipt.superseded],
    ['Refunds', receipt.refunds],
  ];
  return (
    <details>
      <summary>All counts</summary>
      <dl class="receipt-counts">
        {counts.map(([name, n]) => (
          <div key={name} class="metric">
            <dt>{name}</dt>
            <dd>{count(n)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
