import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { answersOf, detailsOf } from '../../../reports/audit/audit-answers.ts';
import type { ShownAudit } from '../documents.ts';
import { Button, Choice } from '../frame/controls.tsx';
import { count, many } from '../frame/format.ts';
import { Due, Name, ReadingBar, useKeptReading } from '../frame/reading.tsx';
import { routeTo } from '../frame/route.ts';
import { Notice, State } from '../frame/state.tsx';
import { EventLink, Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { Ago, At } from '../frame/times.tsx';
import { PlanDialog } from '../plans/plan-dialog.tsx';

const RANGES = [
  ['1h', 'last hour'],
  ['6h', 'last 6 hours'],
  ['24h', 'last day'],
  ['7d', 'last 7 days'],
] as const;

type Since = (typeof RANGES)[number][0];

/** The conservation check: run on a click, because it reads every event of its range. */
export function AuditScreen() {
  const [since, setSince] = useState<Since>('1h');
  const [isPlanning, setPlanning] = useState(false);
  const { reading, error, isReading, read } = useKeptReading('audit');
  const report = reading?.document ?? undefined;
  return (
    <>
      <div class="panel-head">
        <h1>Audit</h1>
        <p class="quiet-text">
          Checks that every published event is accounted for at every consumer. Changes nothing.
        </p>
      </div>
      <section class="panel stack">
        <ReadingBar reading={reading} error={error} isReading={isReading} verb="Reading events">
          <Choice label="Range" value={since} options={RANGES} onChange={setSince} />
          <Button isDisabled={isReading} onClick={() => read({ since })}>
            {reading === null ? 'Run the audit' : 'Run the audit again'}
          </Button>
        </ReadingBar>
        {reading === null && !isReading && <p class="empty">Not run yet.</p>}
        {report !== undefined && (
          <Report report={report} isOk={reading?.exitCode === 0} onPlan={() => setPlanning(true)} />
        )}
      </section>
      {isPlanning && report !== undefined && (
        <PlanDialog request={{ kind: 'repair', since: sinceOf(report) }} onClose={() => setPlanning(false)} />
      )}
    </>
  );
}

/** The range of a repair: as long as the audit's and the time since, so that it covers the same events. */
function sinceOf({ since }: ShownAudit): string {
  return `${Math.ceil((Date.now() - since) / MINUTE_MS) + 10}m`;
}

interface ReportProps {
  readonly report: ShownAudit;
  readonly isOk: boolean;
  readonly onPlan: () => void;
}

function Report({ report, isOk, onPlan }: ReportProps) {
  const { verdict, since, until, events, published, pending, dead, discarded, unreadable } = report;
  const counts = [
    `${many(events, 'event')}: ${published} published, ${pending} pending, ${dead} dead, ${discarded} discarded`,
    ...(unreadable > 0 ? [`${unreadable} unreadable`] : []),
  ];
  return (
    <>
      <Notice is={isOk ? 'ok' : 'broken'} title={verdict}>
        <p>
          <At at={since} /> to <At at={until} />. {counts.join(', ')}.
        </p>
      </Notice>
      <Ledgers consumers={report.consumers} />
      <AuditFindings report={report} onPlan={onPlan} />
    </>
  );
}

type ShownLedger = ShownAudit['consumers'][string] & { readonly consumer: string };

/** The ledger of each consumer: what it should have received, and where each event is. */
function Ledgers({ consumers }: { readonly consumers: ShownAudit['consumers'] }) {
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

interface AuditFindingsProps {
  readonly report: ShownAudit;
  readonly onPlan: () => void;
}

/** The findings of an audit, each with what comes next. */
function AuditFindings({ report, onPlan }: AuditFindingsProps) {
  return (
    <>
      <Missing missing={report.missing} onPlan={onPlan} />
      <Inconclusive inconclusive={report.inconclusive} />
      <Listed title="Doubled: identical events with the same cause" entries={doubledOf(report)} is="broken" />
      <Listed
        title="Deployed resources that differ from their declaration"
        entries={report.drift.map(({ consumer, text }) => [`${consumer} ${text}`, `${consumer}: ${text}`])}
        is="broken"
      >
        <p>
          <a href={routeTo('doctor')}>Doctor</a> has the commands that restore them.
        </p>
      </Listed>
      <Listed
        title="Rows that cannot be read"
        entries={report.unreadableRows.map(({ eventId, consumer, problem }) => [
          `${eventId} ${consumer}`,
          `${eventId}, ${consumer === null ? 'outbox' : `inbox of ${consumer}`}: ${problem}`,
        ])}
        is="broken"
      />
      <Listed
        title="Not read, so the audit is incomplete"
        entries={report.incomplete.map((text) => [text, text])}
        is="look"
      />
      <Listed
        title="Not audited, because foreign events have no outbox row"
        entries={report.notAudited.map(({ consumer, events }) => [
          consumer,
          `${consumer}: ${events.map(({ source, type }) => `${type} of ${source}`).join(', ')}`,
        ])}
        is="idle"
      />
    </>
  );
}

function Missing({ missing, onPlan }: Pick<ShownAudit, 'missing'> & Pick<AuditFindingsProps, 'onPlan'>) {
  if (missing.length === 0) return null;
  return (
    <>
      <Table
        caption="Missing: published but never received"
        columns={[
          { title: 'Event', cell: ({ eventId }) => <EventLink id={eventId} /> },
          { title: 'Type', cell: ({ type }) => <Stored text={type} clip={80} /> },
          { title: 'Consumer', cell: ({ consumer }) => <Name text={consumer} /> },
          { title: 'Published', cell: ({ publishedAt }) => <Ago at={publishedAt} /> },
        ]}
        rows={missing}
        keyOf={({ eventId, consumer }) => `${eventId} ${consumer}`}
        empty=""
      />
      <div class="row">
        <button type="button" onClick={onPlan}>
          Plan a repair
        </button>
        <span class="quiet-text">
          Sends each event only to the consumer that missed it. Fix the cause first.
        </span>
      </div>
    </>
  );
}

function Inconclusive({ inconclusive }: Pick<ShownAudit, 'inconclusive'>) {
  return inconclusive.map(({ consumer, events, queued, missingAtLeast, conclusiveAt }) => (
    <Notice
      key={consumer}
      is="look"
      title={
        <>
          <Stored text={consumer} />: {many(events, 'event')} inconclusive
          {missingAtLeast > 0 && `, at least ${missingAtLeast} missing`}
        </>
      }
    >
      <p>
        These events are lost unless they are still in the queue, which has about {many(queued, 'message')}.
        Run the audit again once the queue is empty
        {conclusiveAt !== null && (
          <>
            , or <Due at={conclusiveAt} /> if all messages in the queue are newer than these events
          </>
        )}
        .
      </p>
    </Notice>
  ));
}

function doubledOf({ doubled }: ShownAudit): readonly (readonly [string, string])[] {
  return doubled.map(({ type, aggregateId, causationId, eventIds }) => [
    eventIds.join(),
    `${type} of ${aggregateId}, caused by ${causationId}: ${eventIds.join(', ')}`,
  ]);
}

/** The entries of a finding that are listed; a terminal shows as many. */
const LISTED_MAX = 20;

interface ListedProps {
  readonly title: string;
  /** A key and a text for each. */
  readonly entries: readonly (readonly [string, string])[];
  readonly is: 'broken' | 'look' | 'idle';
  readonly children?: ComponentChildren;
}

function Listed({ title, entries, is, children }: ListedProps) {
  if (entries.length === 0) return null;
  return (
    <Notice is={is} title={title}>
      <ul>
        {entries.slice(0, LISTED_MAX).map(([key, text]) => (
          <li key={key}>
            <Stored text={text} clip={300} />
          </li>
        ))}
        {entries.length > LISTED_MAX && <li>and {entries.length - LISTED_MAX} more</li>}
      </ul>
      {children}
    </Notice>
  );
}
