import type { ComponentChildren } from 'preact';
import type { ShownAudit } from '../documents.ts';
import { EventLink } from '../frame/event-link.tsx';
import { many } from '../frame/format.ts';
import { Notice } from '../frame/notice.tsx';
import { routeTo } from '../frame/route.ts';
import { Stored } from '../frame/stored.tsx';
import { Table } from '../frame/table.tsx';
import { Ago } from '../frame/times.tsx';
import { Due, Name } from '../readings/reading-bar.tsx';

interface AuditFindingsProps {
  readonly report: ShownAudit;
  readonly onPlan: () => void;
}

/** The findings of an audit, each with what comes next. */
export function AuditFindings({ report, onPlan }: AuditFindingsProps) {
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
