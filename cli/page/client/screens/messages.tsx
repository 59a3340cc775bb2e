import { useEffect } from 'preact/hooks';
import type { ListedMessage } from '../../../reports/messages/list-messages.ts';
import type { MessageCause } from '../../../reports/messages/messages-report.ts';
import type { ReadingDocuments } from '../../server/readings.ts';
import { Attempts } from '../frame/attempts.tsx';
import { Ago, Due, Expiry } from '../frame/clocks.tsx';
import { Button, Choice } from '../frame/controls.tsx';
import { count, many, stateOf } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { ReadingHead, useReading } from '../frame/reading.tsx';
import { type Route, routeTo } from '../frame/route.ts';
import { Notice, State } from '../frame/state.tsx';
import { EventLink, Name, Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';

/** The most messages that are listed one by one. */
const LISTED_MAX = 1_000;

const STATES = [
  ['', 'failed and rejected'],
  ['failed', 'failed, to be retried'],
  ['rejected', 'rejected'],
  ['waiting', 'waiting, unclaimed'],
] as const;

/** The good news if no message has a state. */
const EMPTY: Readonly<Record<(typeof STATES)[number][0], string>> = {
  '': 'No message has failed, and none was rejected',
  failed: 'No message is waiting for a retry',
  rejected: 'No message was rejected',
  waiting: 'No message is waiting to be claimed',
};

/** Not by cause is a value, too: an empty member would be left out of the fragment, and its default would come back. */
const GROUPS = [
  ['cause', 'by cause'],
  ['each', 'one by one'],
] as const;

/** The messages that consumers could not process, or have not claimed: `#/messages?state=failed&consumer=payments&by=cause`. */
export function MessagesScreen({ route: { query } }: { readonly route: Route }) {
  const { info, flow } = useMailroom();
  const { reading, error, isReading, read } = useReading('messages');
  const state = STATES.find(([known]) => known === query.state)?.[0] ?? '';
  const { consumer = '', by = 'cause' } = query;
  const isByCause = by === 'cause';
  const readAgain = () =>
    read({
      state,
      consumer,
      by: isByCause ? 'cause' : undefined,
      limit: isByCause ? undefined : String(LISTED_MAX),
    });
  useEffect(readAgain, [state, consumer, by, read]);
  const choose = (name: 'state' | 'consumer' | 'by') => (value: string) => {
    location.hash = routeTo('messages', '', { state, consumer, by, [name]: value });
  };
  const consumers = [
    ['', 'all consumers'],
    ...info.consumers.map(({ name }) => [name, name] as const),
    ...Object.entries(flow?.status?.sourceConsumers ?? {}).map(
      ([name, { from }]) => [name, `${name}, from ${from}`] as const,
    ),
  ] as const;
  const found = error === null ? reading : null;
  return (
    <>
      <ReadingHead
        used={{ reading: found, error, isReading }}
        title="Messages"
        about="Messages that consumers could not process, or have not claimed."
        answer={found?.document && <Answer document={found.document} state={state} />}
        what="the inbox of every consumer"
      >
        <Choice label="State" value={state} options={STATES} onChange={choose('state')} />
        <Choice label="Consumer" value={consumer} options={consumers} onChange={choose('consumer')} />
        <Choice label="List" value={isByCause ? by : 'each'} options={GROUPS} onChange={choose('by')} />
        <Button isDisabled={isReading} onClick={readAgain}>
          Read again
        </Button>
      </ReadingHead>
      {found?.document && countOf(found.document) > 0 && (
        <section class="panel stack" aria-label="Result">
          <Result document={found.document} />
        </section>
      )}
    </>
  );
}

interface MessagesProps {
  readonly document: ReadingDocuments['messages'];
}

/** The listed messages, counted. */
function countOf(document: MessagesProps['document']): number {
  return 'causes' in document
    ? document.causes.reduce((sum, { count }) => sum + count, 0)
    : document.messages.length;
}

interface MessagesAnswerProps extends MessagesProps {
  readonly state: (typeof STATES)[number][0];
}

/** The number of messages in the chosen state. */
function Answer({ document, state }: MessagesAnswerProps) {
  const listed = countOf(document);
  if (listed === 0) return <State is="ok">{EMPTY[state]}</State>;
  const [, words] = STATES.find(([known]) => known === state) ?? STATES[0];
  return (
    <State is={state === 'waiting' ? 'busy' : 'look'}>
      {document.more && 'At least '}
      {many(listed, 'message')} {words}
    </State>
  );
}

function Result({ document }: MessagesProps) {
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
          keyOf={({ consumer, fingerprint }) => `${consumer} ${fingerprint}`}
          empty=""
        />
      )}
      {messages !== undefined && (
        <Table
          caption="Newest first"
          columns={MESSAGE_COLUMNS}
          rows={messages}
          keyOf={({ consumer, eventId }) => `${consumer} ${eventId}`}
          empty=""
        />
      )}
    </>
  );
}

const CAUSE_COLUMNS: readonly Column<MessageCause>[] = [
  { title: 'Count', isNumber: true, cell: (cause) => count(cause.count) },
  { title: 'Consumer', cell: ({ consumer }) => <Name text={consumer} /> },
  { title: 'Cause', cell: ({ fingerprint }) => <Stored text={fingerprint ?? 'unknown cause'} clip={300} /> },
  { title: 'Oldest', cell: ({ oldestAt }) => <Ago at={oldestAt} /> },
  { title: 'Newest', cell: ({ newestAt }) => <Ago at={newestAt} /> },
  { title: 'Newest event', cell: ({ example }) => <EventLink id={example} /> },
];

const MESSAGE_COLUMNS: readonly Column<ListedMessage>[] = [
  { title: 'Event', cell: ({ eventId }) => <EventLink id={eventId} /> },
  { title: 'Type', cell: ({ type }) => <Name text={type ?? 'unknown'} clip={60} /> },
  { title: 'Consumer', cell: ({ consumer }) => <Name text={consumer} /> },
  {
    title: 'State',
    cell: ({ status, limited }) => {
      const shown = limited ? 'WAITING' : status;
      return <State is={stateOf(shown)}>{shown.toLowerCase()}</State>;
    },
  },
  {
    title: 'Attempts',
    cell: ({ attempt, maxAttempts, status }) =>
      status === 'WAITING' || attempt === 0 ? (
        '–'
      ) : (
        <Attempts is={stateOf(status)} attempt={attempt} max={maxAttempts} />
      ),
  },
  { title: 'Since', cell: ({ at }) => <Ago at={at} /> },
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

/** The next attempt as a clock; of a rejected message, when its dead letter expires. */
function Next({ message: { status, nextAt, expiresAt } }: { readonly message: ListedMessage }) {
  if (status === 'REJECTED')
    return expiresAt === null ? (
      <span>never</span>
    ) : (
      <span>
        dead letter expires <Expiry at={expiresAt} />
      </span>
    );
  if (status === 'WAITING' || nextAt === null) return <span>–</span>;
  return <Due at={nextAt} />;
}
