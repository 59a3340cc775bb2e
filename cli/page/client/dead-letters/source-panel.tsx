import { useId } from 'preact/hooks';
import { escaped } from '../../../terminal/escaped.ts';
import type { PlanRequest } from '../../server/protocol.ts';
import { Ago, Expiry } from '../frame/clocks.tsx';
import { Button } from '../frame/controls.tsx';
import { count, many } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { ReadingBar } from '../frame/reading.tsx';
import { routeTo } from '../frame/route.ts';
import { Notice, State } from '../frame/state.tsx';
import { ShortId, Stored } from '../frame/stored.tsx';
import { type Column, Table } from '../frame/table.tsx';
import { shownVerdict } from '../plans/verdicts.ts';
import {
  type CauseGroup,
  choiceOf,
  READ_MAX,
  type ReadResult,
  type ReadSource,
  sourceWords,
  totalOf,
} from './sources.ts';

interface SourcePanelProps {
  readonly source: string;
  /** A line of a list, instead of a panel. */
  readonly isEmpty: boolean;
  readonly state: ReadSource;
  readonly onRead: () => void;
  readonly onPlan: (request: PlanRequest) => void;
}

/** A dead-letter source: its count from the live status, and after a click its causes. */
export function SourcePanel({ source, isEmpty, state, onRead, onPlan }: SourcePanelProps) {
  const id = useId();
  const { flow } = useMailroom();
  const { isReading, error, result } = state;
  const status = flow?.status ?? null;
  const live = status?.deadLetterSources.find((known) => known.source === source);
  const total = totalOf(source, result, status);
  const title = (
    <h2 id={id}>
      <Stored text={source} />
    </h2>
  );
  const read = (
    <Button
      class={result === null && !isEmpty ? 'primary' : undefined}
      isDisabled={isReading}
      onClick={onRead}
      aria-describedby={id}
    >
      {result === null ? 'Read' : 'Read again'}
    </Button>
  );
  if (isEmpty)
    return (
      <section class="source" aria-labelledby={id}>
        {title}
        <State is={isReading ? 'busy' : 'ok'}>{isReading ? 'Receiving' : 'empty'}</State>
        {read}
      </section>
    );
  return (
    <section class="panel stack" aria-labelledby={id}>
      <div>
        <div class="panel-head">
          {title}
          <Counted
            source={source}
            total={total}
            result={result}
            firstExpiryAt={live?.firstExpiryAt ?? null}
          />
        </div>
        <p class="quiet-text">{sourceWords(source)}</p>
      </div>
      <ReadingBar
        used={{ reading: result, error, isReading }}
        verb="Receiving"
        what="each dead letter, against the deployed code"
      >
        {read}
        {result !== null && result.deadLetters.length > 0 && (
          <Button isDisabled={isReading} onClick={() => onPlan({ kind: 'redrive', source })}>
            Plan a redrive of all
          </Button>
        )}
      </ReadingBar>
      {result !== null && <Causes source={source} result={result} isReading={isReading} onPlan={onPlan} />}
    </section>
  );
}

interface CountedProps extends Pick<SourcePanelProps, 'source'> {
  readonly total: number | undefined;
  readonly result: ReadResult | null;
  /** By the live status. */
  readonly firstExpiryAt: number | null;
}

/** The total, how much of it was read, and before a reading the first expiry that the live status knows. */
function Counted({ source, total, result, firstExpiryAt }: CountedProps) {
  if (total === undefined) return <span class="quiet-text">not read</span>;
  if (total === 0) return <span class="quiet-text">empty, by the live count</span>;
  const isPart = result !== null && result.deadLetters.length < total;
  return (
    <span class="row">
      <State is="broken">
        {isPart
          ? `${count(result.deadLetters.length)} of ${count(total)} read`
          : many(total, source === 'dead' ? 'DEAD event' : 'dead letter')}
      </State>
      {result === null && firstExpiryAt !== null && (
        <span>
          first expires <Expiry at={firstExpiryAt} />
        </span>
      )}
    </span>
  );
}

interface CausesProps extends Pick<SourcePanelProps, 'source' | 'onPlan'> {
  readonly result: ReadResult;
  /** A plan receives the dead letters, too: it would see none of those that are being read. */
  readonly isReading: boolean;
}

function Causes(props: CausesProps) {
  const { runs } = useMailroom();
  const { source, result } = props;
  const { at, total, deadLetters, causes, notChecked } = result;
  const isChanged = runs.some(({ startedAt, command }) => startedAt > at && command.includes(source));
  const read = deadLetters.length;
  return (
    <>
      {isChanged && (
        <Notice is="look" title="A change to this source was started after it was read. Read it again." />
      )}
      {read < total && read >= READ_MAX && (
        <Notice is="look" title={`${count(read)} of ${count(total)} dead letters were read`}>
          <p>The counts below are lower bounds. A plan covers at most {count(READ_MAX)} at a time.</p>
        </Notice>
      )}
      {read < total && read < READ_MAX && (
        <Notice is="look" title={`${many(total - read, 'dead letter')} could not be received`}>
          <p>Another reader is receiving them. Read again in half a minute.</p>
        </Notice>
      )}
      {notChecked !== null && (
        <Notice is="look" title="Not checked against the deployed code">
          <p>
            <Stored text={notChecked} />
          </p>
        </Notice>
      )}
      <Table
        caption="By cause"
        columns={columnsOf(props)}
        rows={causes}
        keyOf={({ fingerprint }) => fingerprint ?? ''}
        empty="No dead letters."
      />
    </>
  );
}

function columnsOf({ source, result: { causes }, isReading, onPlan }: CausesProps): Column<CauseGroup>[] {
  const isKept = causes.every(({ firstExpiryAt }) => firstExpiryAt === null);
  const plan = (group: CauseGroup, kind: 'redrive' | 'discard') =>
    onPlan({ kind, source, ...choiceOf(group, causes) });
  const columns: Column<CauseGroup>[] = [
    { title: 'Count', isNumber: true, cell: ({ deadLetters }) => count(deadLetters.length) },
    {
      title: 'Cause',
      cell: ({ fingerprint }) => (
        <a href={routeTo('dead-letters', source, { cause: fingerprint ?? UNKNOWN_CAUSE })}>
          {fingerprint === null ? 'unknown cause' : <Stored text={fingerprint} clip={200} />}
        </a>
      ),
    },
    { title: 'Deployed code', cell: (group) => <Verdicts source={source} {...group} /> },
    { title: 'Oldest', cell: ({ oldestAt }) => <Ago at={oldestAt} /> },
    { title: 'First expiry', cell: ({ firstExpiryAt }) => <Expiry at={firstExpiryAt} /> },
    {
      title: 'Example',
      cell: ({ deadLetters: [first] }) => <Example source={source} id={first?.id ?? ''} />,
    },
    {
      title: 'Plan',
      cell: (group) => (
        <span class="actions">
          <Button isDisabled={isReading} onClick={() => plan(group, 'redrive')}>
            Redrive
          </Button>
          <Button isDisabled={isReading} onClick={() => plan(group, 'discard')}>
            Discard
          </Button>
        </span>
      ),
    },
  ];
  return columns.filter(({ title }) => !(isKept && title === 'First expiry'));
}

/** The cause of the dead letters without one, in a route. No fingerprint is a single character. */
export const UNKNOWN_CAUSE = '-';

/** The most earlier numbers that a group names. */
const WAITS_FOR_MAX = 2;

type VerdictsProps = Pick<CauseGroup, 'verdicts' | 'waitsFor'> & Pick<SourcePanelProps, 'source'>;

function Verdicts({ source, verdicts, waitsFor }: VerdictsProps) {
  if (verdicts.size === 0) return <span class="quiet-text">not checked</span>;
  return (
    <span class="verdicts">
      {[...verdicts].map(([verdict, number]) => {
        const { is, label } = shownVerdict(verdict, source);
        return (
          <State key={verdict} is={is}>
            {verdicts.size === 1 ? label : `${count(number)} ${label}`}
          </State>
        );
      })}
      {waitsFor.slice(0, WAITS_FOR_MAX).map((text) => (
        <Stored key={text} text={text} />
      ))}
      {waitsFor.length > WAITS_FOR_MAX && `and ${count(waitsFor.length - WAITS_FOR_MAX)} more`}
    </span>
  );
}

function Example({ source, id }: { readonly source: string; readonly id: string }) {
  return (
    <a
      class="id"
      href={routeTo('dead-letters', source, { id })}
      title={escaped(id)}
      aria-label={`Dead letter ${escaped(id)}`}
    >
      <ShortId id={id} />
    </a>
  );
}
