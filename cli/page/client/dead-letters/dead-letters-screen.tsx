import { useState } from 'preact/hooks';
import { escaped } from '../../../terminal/escaped.ts';
import type { PlanRequest } from '../../server/protocol.ts';
import { Ago, Expiry } from '../frame/clocks.tsx';
import { Button } from '../frame/controls.tsx';
import { errorText, many } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { type Route, routeTo } from '../frame/route.ts';
import { Notice, State } from '../frame/state.tsx';
import { EventLink, Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { PlanDialog } from '../plans/plan-dialog.tsx';
import { shownVerdict } from '../plans/verdicts.ts';
import { DeadLetterView, PlanButtons } from './dead-letter-view.tsx';
import { SourcePanel, UNKNOWN_CAUSE } from './source-panel.tsx';
import { choiceOf, type ReadDeadLetter, totalOf, useReadSources } from './sources.ts';

/**
 * Dead letters: by source and cause, then those of a cause (`#/dead-letters/<source>?cause=…`), then one
 * (`#/dead-letters/<source>?id=…`).
 */
export function DeadLettersScreen({ route: { argument: source, query } }: { readonly route: Route }) {
  const [request, setRequest] = useState<PlanRequest | null>(null);
  const { cause, id } = query;
  return (
    <>
      {source !== '' && id !== undefined ? (
        <>
          <Heading source={source} title="Dead letter" />
          <DeadLetterView key={`${source} ${id}`} source={source} id={id} onPlan={setRequest} />
        </>
      ) : source !== '' && cause !== undefined ? (
        <>
          <Heading source={source} title={cause === UNKNOWN_CAUSE ? 'Unknown cause' : cause} />
          <CauseView source={source} cause={cause} onPlan={setRequest} />
        </>
      ) : (
        <Overview only={source} onPlan={setRequest} />
      )}
      {request !== null && <PlanDialog request={request} onClose={() => setRequest(null)} />}
    </>
  );
}

/** The title, below the way back. */
function Heading({ source, title }: { readonly source: string; readonly title: string }) {
  return (
    <div>
      {source !== '' && (
        <nav aria-label="Breadcrumb" class="breadcrumb">
          <a href={routeTo('dead-letters')}>Dead letters</a>
          <span aria-hidden="true">/</span>
          <a href={routeTo('dead-letters', source)}>
            <Stored text={source} />
          </a>
        </nav>
      )}
      <h1>
        <Stored text={title} clip={240} />
      </h1>
    </div>
  );
}

interface PlanProps {
  readonly onPlan: (request: PlanRequest) => void;
}

/** The sources with dead letters first: the others are usually empty. */
function Overview({ only, onPlan }: PlanProps & { readonly only: string }) {
  const { info, flow } = useMailroom();
  const { of, read } = useReadSources();
  const status = flow?.status ?? null;
  const countOf = (source: string) => totalOf(source, of(source).result, status);
  const known = info.sources.filter((source) => only === '' || source === only);
  // Before the first status, each may have dead letters.
  const isEmpty = (source: string) => of(source).error === null && countOf(source) === 0;
  const sources = known.toSorted((a, b) => (countOf(b) ?? 0) - (countOf(a) ?? 0));
  const panels = (shown: readonly string[]) =>
    shown.map((source) => (
      <SourcePanel
        key={source}
        source={source}
        isEmpty={isEmpty(source)}
        state={of(source)}
        onRead={() => read(source)}
        onPlan={onPlan}
      />
    ));
  const empty = sources.filter(isEmpty);
  return (
    <>
      <div class="row spread">
        <Heading source="" title="Dead letters" />
        {only !== '' && <a href={routeTo('dead-letters')}>All sources</a>}
        {sources.length > 1 && (
          <Button
            isDisabled={sources.every((source) => of(source).isReading)}
            onClick={() => {
              for (const source of sources) read(source);
            }}
          >
            Read all sources
          </Button>
        )}
        <p class="quiet-text whole-line">
          {empty.length === known.length ? (
            <State is="ok">No event and no message is waiting for your decision.</State>
          ) : (
            'Read only on request: receiving a dead letter hides it from other readers for up to 30 seconds.'
          )}
        </p>
      </div>
      {sources.length === 0 && <p class="quiet-text">This Mailroom has no such dead-letter source.</p>}
      {panels(sources.filter((source) => !isEmpty(source)))}
      {empty.length > 0 && (
        <div class="panel">
          <div class="lines">{panels(empty)}</div>
        </div>
      )}
    </>
  );
}

interface CauseViewProps extends PlanProps {
  readonly source: string;
  /** A fingerprint, or `UNKNOWN_CAUSE`. */
  readonly cause: string;
}

/** The dead letters of one cause. */
function CauseView({ source, cause, onPlan }: CauseViewProps) {
  const { of, read } = useReadSources();
  const { result, isReading } = of(source);
  const group = result?.causes.find(({ fingerprint }) => (fingerprint ?? UNKNOWN_CAUSE) === cause);
  if (result === null || group === undefined) {
    const title =
      result === null
        ? 'The dead letters of this source have not been read.'
        : 'No dead letter has this cause.';
    return (
      <Notice is="idle" title={title}>
        <p>
          <Button isDisabled={isReading} onClick={() => read(source)}>
            {isReading ? 'Receiving' : 'Read'}
          </Button>
        </p>
      </Notice>
    );
  }
  return (
    <section class="panel stack">
      <div class="row">
        <PlanButtons choice={{ source, ...choiceOf(group, result.causes) }} onPlan={onPlan} />
        <span class="reading-age">
          Read <Ago at={result.at} />
        </span>
      </div>
      <Table
        caption={many(group.deadLetters.length, 'dead letter')}
        columns={columnsOf(source)}
        rows={group.deadLetters}
        keyOf={({ id }) => id}
        empty="No dead letters."
      />
    </section>
  );
}

function columnsOf(source: string): readonly Column<ReadDeadLetter>[] {
  return [
    {
      title: 'Dead letter',
      cell: ({ id }) => (
        <a class="id" href={routeTo('dead-letters', source, { id })} title={escaped(id)}>
          <Stored text={id} clip={37} />
        </a>
      ),
    },
    {
      title: 'Event',
      cell: ({ eventId }) => (eventId === null ? 'cannot be read' : <EventLink id={eventId} />),
    },
    { title: 'Type', cell: ({ type }) => <Stored text={type ?? 'unknown'} clip={60} /> },
    { title: 'Since', cell: ({ sentAt }) => <Ago at={sentAt} /> },
    { title: 'Expires', cell: ({ expiresAt }) => <Expiry at={expiresAt} /> },
    {
      title: 'Deployed code',
      cell: ({ verdict, ...error }) =>
        verdict ? (
          <span class="verdicts">
            <State is={shownVerdict(verdict, source).is}>{shownVerdict(verdict, source).label}</State>
            {errorText(error) !== '' && <Stored text={errorText(error)} clip={160} />}
          </span>
        ) : (
          'not checked'
        ),
    },
  ];
}
