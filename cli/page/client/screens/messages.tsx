import { useEffect } from 'preact/hooks';
import type { ListedMessage } from '../../../reports/messages/list-messages.ts';
import type { Cause } from '../../../terminal/listing.ts';
import type { ReadingDocuments, ReadingParameters } from '../../server/readings.ts';
import { Button } from '../frame/button.tsx';
import { EventLink } from '../frame/event-link.tsx';
import { count } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { Notice } from '../frame/notice.tsx';
import { type Route, routeTo } from '../frame/route.ts';
import { State } from '../frame/state.tsx';
import { stateOf } from '../frame/state-name.ts';
import { Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { Ago, Expiry } from '../frame/times.tsx';
import { useReading } from '../frame/use-reading.ts';
import { Choice } from '../readings/choice.tsx';
import { Due, Name, ReadingBar } from '../readings/reading-bar.tsx';

/** The most messages that are listed one by one. */
const LISTED_MAX = 1_000;

type MessageState = 'failed' | 'rejected' | 'waiting';

const STATES = [
  ['', 'failed and rejected'],
  ['failed', 'failed, to be retried'],
  ['rejected', 'rejected'],
  ['waiting', 'waiting, unclaimed'],
] as const;

const GROUPS = [
  ['cause', 'by cause'],
  ['', 'one by one'],
] as const;

/** The messages that consumers could not process, or have not claimed: `#/messages?state=failed&consumer=payments&by=cause`. */
export function MessagesScreen({ route: { query } }: { readonly route: Route }) {
  const { info } = useMailroom();
  const { reading, error, isReading, read } = useReading('messages');
  const state = query.state ?? '';
  const consumer = query.consumer ?? '';
  const by = query.by ?? 'cause';
  const readAgain = () => read(parametersOf(state, consumer, by));
  useEffect(() => read(parametersOf(state, consumer, by)), [state, consumer, by, read]);
  const choose = (change: Readonly<Record<string, string>>) => {
    // An empty member would be left out of the fragment, and its default would come back.
    const next = { state, consumer, by, ...change };
    location.hash = routeTo('messages', '', { ...next, by: next.by === '' ? 'each' : next.by });
  };
  const consumers = [['', 'all consumers'], ...info.consumers.map(({ name }) => [name, name])] as const;
  return (
    <>
      <h1>Messages</h1>
      <section class="panel stack">
        <ReadingBar
          reading={error === null ? reading : null}
          error={error}
          isReading={isReading}
          verb="Reading"
        >
          <Choice
            label="State"
            value={state}
            options={STATES}
            onChange={(value) => choose({ state: value })}
          />
          <Choice
            label="Consumer"
            value={consumer}
            options={consumers as readonly (readonly [string, string])[]}
            onChange={(value) => choose({ consumer: value })}
          />
          <Choice
            label="List"
            value={by === 'cause' ? 'cause' : ''}
            options={GROUPS}
            onChange={(value) => choose({ by: value })}
          />
          <Button isDisabled={isReading} onClick={readAgain}>
            Read again
          </Button>
        </ReadingBar>
        {error === null && reading?.document && <Result document={reading.document} />}
      </section>
    </>
  );
}

function parametersOf(state: string, consumer: string, by: string): ReadingParameters['messages'] {
  const isState = STATES.some(([known]) => known === state) && state !== '';
  return {
    ...(isState ? { state: state as MessageState } : {}),
    ...(consumer === '' ? {} : { consumer }),
    ...(by === 'cause' ? { by: 'cause' } : { limit: String(LISTED_MAX) }),
  };
}

function Result({ document }: { readonly document: ReadingDocuments['messages'] }) {
  const causes = 'causes' in document ? document.causes : undefined;
  const messages = 'messages' in document ? document.messages : undefined;
  return (
    <>
      {document.more && (
        <Notice
          is="look"
          title={
            causes === undefined
              ? `There are more than the ${count(messages?.length ?? 0)} messages below: list them by cause.`
              : 'Not all messages were read: the counts are lower bounds.'
          }
        />
      )}
      {causes !== undefined && (
        <Table
          caption="By cause"
          columns={CAUSE_COLUMNS}
          rows={causes}
          keyOf={({ fingerprint }) => fingerprint ?? ''}
          empty="No such messages."
        />
      )}
      {messages !== undefined && (
        <Table
          caption="Messages"
          columns={MESSAGE_COLUMNS}
          rows={messages}
          keyOf={({ consumer, eventId }) => `${consumer} ${eventId}`}
          empty="No such messages."
        />
      )}
    </>
  );
}

const CAUSE_COLUMNS: readonly Column<Cause>[] = [
  { title: 'Count', isNumber: true, cell: (cause) => count(cause.count) },
  { title: 'Cause', cell: ({ fingerprint }) => <Stored text={fingerprint ?? 'unknown cause'} clip={300} /> },
  { title: 'Oldest', cell: ({ oldestAt }) => (oldestAt === null ? '?' : <Ago at={oldestAt} />) },
  { title: 'Newest', cell: ({ newestAt }) => (newestAt === null ? '?' : <Ago at={newestAt} />) },
  { title: 'Newest event', cell: ({ example }) => <EventLink id={example} /> },
];

const MESSAGE_COLUMNS: readonly Column<ListedMessage>[] = [
  { title: 'Event', cell: ({ eventId }) => <EventLink id={eventId} /> },
  { title: 'Type', cell: ({ type }) => <Stored text={type ?? 'unknown'} clip={60} /> },
  { title: 'Consumer', cell: ({ consumer }) => <Name text={consumer} /> },
  {
    title: 'State',
    cell: ({ status }) => <State is={stateOf(status)}>{status.toLowerCase()}</State>,
  },
  { title: 'Attempt', cell: (message) => attempts(message) },
  { title: 'Since', cell: ({ at }) => (at === null ? '?' : <Ago at={at} />) },
  { title: 'Next', cell: (message) => <Next message={message} /> },
  {
    title: 'Error',
    cell: ({ reason, lastError, status }) => (
      <Stored
        text={
          [reason, lastError].filter(Boolean).join(': ') || (status === 'WAITING' ? 'not claimed yet' : '?')
        }
        clip={200}
      />
    ),
  },
];

function attempts({ attempt, maxAttempts, status }: ListedMessage): string {
  if (status === 'WAITING' || attempt === 0) return '–';
  if (attempt !== null && attempt > maxAttempts) return String(attempt);
  return `${attempt ?? '?'} of ${maxAttempts}`;
}

/** The next attempt as a clock; of a rejected message, when its dead letter expires. */
function Next({ message: { status, nextAt, expiresAt } }: { readonly message: ListedMessage }) {
  if (status === 'REJECTED')
    return expiresAt === null ? (
      <span>never</span>
    ) : (
      <span>
        never; its dead letter expires <Expiry at={expiresAt} />
      </span>
    );
  if (status === 'WAITING' || nextAt === null) return <span>–</span>;
  return <Due at={nextAt} />;
}
