import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { answersOf, detailsOf } from '../../../reports/audit/audit-answers.ts';
import { changedWords } from '../../../reports/audit/changed-words.ts';
import type { ReadingDocuments } from '../../server/readings.ts';
import { Ago, At, Due } from '../frame/clocks.tsx';
import { Button, Choice } from '../frame/controls.tsx';
import { count, many } from '../frame/format.ts';
import { ReadingHead, useKeptReading } from '../frame/reading.tsx';
import { routeTo } from '../frame/route.ts';
import { Notice, State } from '../frame/state.tsx';
import { EventLink, Name, Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { PlanDialog } from '../plans/plan-dialog.tsx';

type ShownAudit = ReadingDocuments['audit'];

const RANGES = [
  ['1h', 'last hour'],
  ['6h', 'last 6 hours'],
  ['24h', 'last day'],
  ['7d', 'last 7 days'],
] as const;

/** The conservation check: run on a click, because it reads every event of its range. */
export function AuditScreen() {
  const [since, setSince] = useState<(typeof RANGES)[number][0]>('1h');
  const [isPlanning, setPlanning] = useState(false);
  const used = useKeptReading('audit');
  const { reading, isReading, read } = used;
  const audit = reading?.document ?? undefined;
  return (
    <>
      <ReadingHead
        used={used}
        title="Audit"
        about="Not audited yet: checks that every published event is accounted for at every consumer, and changes nothing."
        answer={
          audit && <Answer audit={audit} isOk={reading?.exitCode === 0} onPlan={() => setPlanning(true)} />
        }
        isShort
        what="every event of the range at every consumer"
      >
        <Choice label="Range" value={since} options={RANGES} onChange={setSince} />
        <Button
          class={reading === null ? 'primary' : undefined}
          isDisabled={isReading}
          onClick={() => read({ since })}
        >
          {reading === null ? 'Run the audit' : 'Run again'}
        </Button>
      </ReadingHead>
      {reading === null && !isReading && <Answers />}
      {audit !== undefined && (
        <section class="stack" aria-label="Result">
          <Missing audit={audit} />
          <Changed audit={audit} />
          <Inconclusive audit={audit} />
          <Findings audit={audit} />
          <Ledgers audit={audit} />
        </section>
      )}
      {isPlanning && audit !== undefined && (
        <PlanDialog request={{ kind: 'repair', since: sinceOf(audit) }} onClose={() => setPlanning(false)} />
      )}
    </>
  );
}

/** The answers of an audit, before it has run. */
function Answers() {
  return (
    <section class="panel stack" aria-labelledby="answers-title">
      <h2 id="answers-title">What it finds</h2>
      <ul class="plain-list">
        <li>Missing: published, but a consumer never received it. A plan sends it again, only there.</li>
        <li>Open: still waiting, being worked on, or rejected.</li>
        <li>Duplicated: the same event twice, with the same cause.</li>
        <li>Cannot tell: the queue is not empty yet. The result says when it can.</li>
      </ul>
      <p class="quiet-text">Reads every event of the range.</p>
    </section>
  );
}

/** The range of a repair: as long as the audit's and the time since, so that it covers the same events. */
function sinceOf({ since }: ShownAudit): string {
  return `${Math.ceil((Date.now() - since) / MINUTE_MS) + 10}m`;
}

interface AuditProps {
  readonly audit: ShownAudit;
}

interface AuditAnswerProps extends AuditProps {
  readonly isOk: boolean;
  readonly onPlan: () => void;
}

/** The verdict, and the repair of missing events. */
function Answer({ audit: { verdict, missing, changedRows }, isOk, onPlan }: AuditAnswerProps) {
  return (
    <>
      <State is={isOk ? 'ok' : 'broken'}>
        {/* Another verdict may begin with the name of a consumer. */}
        {isOk ? <span class="verdict">{verdict}</span> : <Stored text={verdict} />}
      </State>
      {missing.length + changedRows.length > 0 && (
        <Button class="primary" onClick={onPlan}>
          Plan a repair
        </Button>
      )}
    </>
  );
}

/** The audited events, and the ledger of each consumer: the events that it should have received, and where each is. */
function Ledgers({ audit }: AuditProps) {
  const { since, until, events, published, pending, dead, discarded, cancelled, unreadable } = audit;
  return (
    <>
      <p class="quiet-text">
        <At at={since} /> to <At at={until} />. {many(events, 'event')}: {count(published)} published,{' '}
        {count(pending)} pending, {count(dead)} dead, {count(discarded)} discarded
        {cancelled > 0 && `, ${count(cancelled)} cancelled`}
        {unreadable > 0 && `, ${count(unreadable)} unreadable`}.
      </p>
      <div class="panel">
        <Table
          caption="By consumer"
          columns={LEDGER_COLUMNS}
          rows={Object.entries(audit.consumers).map(([consumer, counts]) => ({ consumer, ...counts }))}
          keyOf={({ consumer }) => consumer}
          empty="No consumers."
        />
      </div>
    </>
  );
}

const LEDGER_COLUMNS: readonly Column<ShownAudit['consumers'][string] & { readonly consumer: string }>[] = [
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

function Missing({ audit: { missing } }: AuditProps) {
  if (missing.length === 0) return null;
  return (
    <div class="panel stack">
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
      <p class="quiet-text">
        A repair sends each event only to the consumer that missed it. Fix the cause first.
      </p>
    </div>
  );
}

/** The rows that Mailroom does not write. */
function Changed({ audit: { changedRows } }: AuditProps) {
  if (changedRows.length === 0) return null;
  return (
    <div class="panel stack">
      <Table
        caption="Changed by hand: rows that Mailroom does not write"
        columns={[
          { title: 'Event', cell: ({ eventId }) => <EventLink id={eventId} /> },
          { title: 'Type', cell: ({ type }) => <Stored text={type ?? 'unknown'} clip={80} /> },
          { title: 'What', cell: (row) => <Stored text={changedWords(row)} clip={200} /> },
        ]}
        rows={changedRows}
        keyOf={({ eventId, consumer }) => `${eventId} ${consumer}`}
        empty=""
      />
      <p class="quiet-text">A repair puts each right. Find out first who writes to the table.</p>
    </div>
  );
}

function Inconclusive({ audit: { inconclusive } }: AuditProps) {
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

/** The other findings, each with its entries. */
function Findings({ audit: { duplicated, drift, unreadableRows, incomplete, notAudited } }: AuditProps) {
  return (
    <>
      <Listed
        title="Duplicated: identical events with the same cause"
        entries={duplicated.map(
          ({ type, aggregateId, causationId, eventIds }) =>
            `${type} of ${aggregateId}, caused by ${causationId}: ${eventIds.join(', ')}`,
        )}
        is="broken"
      />
      <Listed
        title="Deployed resources that differ from their declaration"
        entries={drift.map(({ consumer, text }) => `${consumer}: ${text}`)}
        is="broken"
      >
        <p>
          <a href={routeTo('doctor')}>Doctor</a> has the commands that restore them.
        </p>
      </Listed>
      <Listed
        title="Rows that cannot be read"
        entries={unreadableRows.map(
          ({ eventId, consumer, problem }) =>
            `${eventId}, ${consumer === null ? 'outbox' : `inbox of ${consumer}`}: ${problem}`,
        )}
        is="broken"
      />
      <Listed title="Not read, so the audit is incomplete" entries={incomplete} is="look" />
      <Listed
        title="Not audited: external events, and consumers whose inbox or source cannot be read"
        entries={notAudited.map(
          ({ consumer, events }) =>
            `${consumer}: ${events.map(({ source, type }) => `${type} of ${source}`).join(', ')}`,
        )}
        is="idle"
      />
    </>
  );
}

/** The entries of a finding that are listed; a terminal shows as many. */
const LISTED_MAX = 20;

interface ListedProps {
  readonly title: string;
  readonly entries: readonly string[];
  readonly is: 'broken' | 'look' | 'idle';
  readonly children?: ComponentChildren;
}

function Listed({ title, entries, is, children }: ListedProps) {
  if (entries.length === 0) return null;
  return (
    <Notice is={is} title={title}>
      <ul>
        {entries.slice(0, LISTED_MAX).map((text) => (
          <li key={text}>
            <Stored text={text} clip={300} />
          </li>
        ))}
        {entries.length > LISTED_MAX && <li>and {entries.length - LISTED_MAX} more</li>}
      </ul>
      {children}
    </Notice>
  );
}
