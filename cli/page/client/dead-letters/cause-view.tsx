import { escaped } from '../../../terminal/escaped.ts';
import type { PlanRequest } from '../../server/protocol.ts';
import { Button } from '../frame/button.tsx';
import { EventLink } from '../frame/event-link.tsx';
import { many } from '../frame/format.ts';
import { Notice } from '../frame/notice.tsx';
import { routeTo } from '../frame/route.ts';
import { State } from '../frame/state.tsx';
import { Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { Ago, Expiry } from '../frame/times.tsx';
import { VERDICTS } from '../plans/verdicts.ts';
import { choiceOf, type ReadDeadLetter } from './causes.ts';
import type { ReadSource } from './read-sources.ts';
import { UNKNOWN_CAUSE } from './source-panel.tsx';

interface CauseViewProps {
  readonly source: string;
  /** A fingerprint, or `UNKNOWN_CAUSE`. */
  readonly cause: string;
  readonly state: ReadSource;
  readonly onRead: () => void;
  readonly onPlan: (request: PlanRequest) => void;
}

/** The dead letters of one cause. */
export function CauseView({ source, cause, state, onRead, onPlan }: CauseViewProps) {
  const { result, isReading } = state;
  const group = result?.causes.find(({ fingerprint }) => (fingerprint ?? UNKNOWN_CAUSE) === cause);
  if (result === null || group === undefined)
    return (
      <Notice
        is="idle"
        title={
          result === null
            ? 'The dead letters of this source have not been read.'
            : 'No dead letter has this cause.'
        }
      >
        <p>
          <Button isDisabled={isReading} onClick={onRead}>
            {isReading ? 'Receiving' : 'Read'}
          </Button>
        </p>
      </Notice>
    );
  const choice = choiceOf(group, result.causes);
  return (
    <section class="panel stack">
      <div class="row">
        <button type="button" onClick={() => onPlan({ kind: 'redrive', source, ...choice })}>
          Plan a redrive
        </button>
        <button type="button" class="danger" onClick={() => onPlan({ kind: 'discard', source, ...choice })}>
          Plan a discard
        </button>
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
    { title: 'Since', cell: ({ sentAt }) => (sentAt === null ? '?' : <Ago at={sentAt} />) },
    { title: 'Expires', cell: ({ expiresAt }) => <Expiry at={expiresAt} /> },
    {
      title: 'Deployed code',
      cell: ({ verdict, code, message }) =>
        verdict ? (
          <span class="verdicts">
            <State is={VERDICTS[verdict].is}>{VERDICTS[verdict].label}</State>
            {(code || message) && <Stored text={[code, message].filter(Boolean).join(': ')} clip={160} />}
          </span>
        ) : (
          'not checked'
        ),
    },
  ];
}
