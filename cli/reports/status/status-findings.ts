import { isClosed } from '../../deployment/refusal-code.ts';
import { clipped, many } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { duration } from '../../terminal/times.ts';
import type { PartProblem } from '../checks/check.ts';
import { waitCommand, waitText } from '../events/waits.ts';
import { ackOf } from '../findings/acknowledgements.ts';
import { isOpen, warningState } from '../findings/finding-counts.ts';
import {
  type CommandLines,
  type Finding,
  findingId,
  notCheckedFindings,
  problemFindings,
} from '../findings/findings.ts';
import { heartbeatFindings } from './heartbeat-status.ts';
import type { StatusFacts, StatusReport } from './status-report.ts';
import { warningWords } from './warning-words.ts';

/**
 * The findings of a status, the broken parts first and the acknowledged ones last: what `mailroom status` prints, and what its JSON document holds.
 *
 * @example
 * ```ts
 * const broken = statusFindings(report, deployment).filter(({ state }) => state === 'broken');
 * ```
 */
export function statusFindings(report: StatusFacts, lines: CommandLines): readonly Finding[] {
  const { wiring, looks, heartbeat, outbox, at } = report;
  // Events that are due show it, too, and since when.
  const isShown = ({ problem }: PartProblem) =>
    problem === 'sweep-silent' && outbox.stuck.some(({ because }) => because === 'due');
  const problems = wiring.problems.filter((problem) => !isShown(problem));
  const as = (state: Finding['state'], facts: Iterable<Fact>): Finding[] =>
    [...facts].map(({ commands, ...fact }) => ({
      state,
      ...fact,
      commands: commands.map(lines.commandLine),
    }));
  const findings = identified([
    ...problemFindings(problems, lines),
    ...as('broken', outboxFacts(report)),
    ...as('broken', goneFacts(report)),
    ...as('broken', deadLetterFacts(report)),
    ...as('broken', consumerFacts(report)),
    ...looks.flatMap((look) =>
      as(warningState(look), [{ code: look.look, part: look.consumer, count: null, ...warningWords(look) }]),
    ),
    ...heartbeatFindings(heartbeat, report, lines),
    ...notCheckedFindings(wiring, lines),
  ]).map((finding): Finding => {
    const ack = ackOf(finding, lines.acks ?? [], at);
    if (ack === undefined) return finding;
    const { by, until, reason } = ack;
    return { ...finding, acknowledged: { by, until, reason } };
  });
  return [...findings.filter(isOpen), ...findings.filter((finding) => !isOpen(finding))];
}

/** The state of a status: one in which every finding is acknowledged is `ok`. */
export function stateOf(findings: readonly Finding[]): StatusReport['state'] {
  const open = findings.filter(isOpen);
  if (open.some(({ state }) => state === 'broken')) return 'broken';
  return open.length > 0 ? 'look' : 'ok';
}

/** Gives each finding about a part its id. Findings with one id are counted, so that an acknowledgement of one does not hide another. */
function identified(findings: readonly Finding[]): Finding[] {
  const ids = findings.map((finding) => (finding.part === null ? undefined : findingId(finding)));
  return findings.map((finding, index) => {
    const id = ids[index];
    if (id === undefined) return finding;
    const same = ids.filter((one) => one === id).length;
    return { id, ...finding, count: finding.count ?? (same > 1 ? same : null) };
  });
}

/** A fact, and the commands to run, in order: never none. */
interface Fact extends Pick<Finding, 'code' | 'part' | 'resource' | 'count' | 'what'> {
  readonly commands: readonly [ShellText, ...ShellText[]];
}

function* outboxFacts({ outbox, wiring, at }: StatusFacts): Generator<Fact> {
  const of = (code: string, count: number) => ({ code, part: 'outbox', count });
  // The check of the database explains them.
  const isExplained = wiring.problems.some(({ part, level }) => part === 'database' && level === 'flow');
  for (const group of outbox.stuck) {
    const { because, events, since, store } = group;
    if (isExplained && store !== null && because === 'due') continue;
    const swept = outbox.sweptAgoMs === null ? 'never' : `${duration(outbox.sweptAgoMs)} ago`;
    const { overdue } = outbox.scheduled;
    const scheduled = overdue === 0 ? '' : `, ${overdue} of them scheduled and overdue`;
    const counted =
      events < outbox.pending
        ? `${events} of ${outbox.pending} pending events should be published by now`
        : `${many(events, 'event')} pending`;
    const pending = `${counted}, the oldest for ${duration(at - since)}`;
    yield {
      ...{ code: 'events-pending', part: store === null ? 'outbox' : 'database', count: events },
      // One reason has one remedy, and is acknowledged by itself.
      resource: because,
      what:
        because === 'due' && store === null
          ? `${pending}${scheduled}; last sweep: ${swept}`
          : `${pending}: ${waitText(group, at)}`,
      commands: [waitCommand(group, at) ?? shell`events list`],
    };
  }
  if (outbox.undeclared > 0) {
    const { firstUndeclared: first } = outbox;
    const what = `${many(outbox.undeclared, 'event')} pending with a source that no producer of this Mailroom declares: the relay does not publish them. If they are genuine, add the source to \`publishes\` and deploy; if not, they were forged`;
    yield {
      ...of('events-undeclared', outbox.undeclared),
      what,
      commands: [first === null ? shell`events list` : shell`why ${first} --payload`],
    };
  }
  if (outbox.unreadable > 0) {
    const what = `${many(outbox.unreadable, 'row')} in the outbox cannot be read and may never be published`;
    yield { ...of('rows-unreadable', outbox.unreadable), what, commands: [shell`audit --since 24h`] };
  }
}

function* deadLetterFacts({ deadLetterSources, at }: StatusFacts): Generator<Fact> {
  for (const { source, count, firstExpiryAt, errorCode } of deadLetterSources) {
    if (count === 0) continue;
    const list = shell`dlq list ${source} --by cause`;
    const to = source.slice(source.indexOf(':') + 1);
    const refused =
      errorCode === undefined
        ? ''
        : `EventBridge ${isClosed(errorCode) ? 'was not allowed to send' : 'could not deliver'} to the queue of ${to}: ${clipped(errorCode)}; `;
    const held = source === 'dead' ? many(count, 'DEAD event') : `${many(count, 'dead letter')} in ${source}`;
    const expiry =
      firstExpiryAt === null ? '' : `; the first is permanently deleted in ${duration(firstExpiryAt - at)}`;
    const what = `${refused}${held}${expiry}`;
    yield {
      code: 'dead-letters',
      part: source,
      count,
      what,
      // It compares the queue and its policy with the stack.
      commands: isClosed(errorCode) ? [shell`doctor`, list] : [list],
    };
  }
}

/** Queues that no check of the flow reads. */
function* goneFacts({ gone, wiring }: StatusFacts): Generator<Fact> {
  const known = new Set(wiring.problems.map(({ physicalId }) => physicalId));
  for (const url of gone.filter((one) => !known.has(one))) {
    const what = `the queue ${url} does not exist: messages sent to it are lost`;
    yield { code: 'no-queue', part: 'queue', resource: url, count: null, what, commands: [shell`doctor`] };
  }
}

function* consumerFacts({ consumers, sourceConsumers, deadLetterSources }: StatusFacts): Generator<Fact> {
  for (const [name, { from, rejected, unreadable }] of Object.entries(sourceConsumers)) {
    const commands: Fact['commands'] = [shell`messages list --rejected --consumer ${name}`];
    if (rejected > 0) {
      const what = `${many(rejected, 'message')} rejected by ${name}, which receives from ${from}: the dead letters are where it keeps them`;
      yield { code: 'messages-rejected', part: name, count: rejected, what, commands };
    }
    if (unreadable > 0) {
      const what = `${many(unreadable, 'row')} of ${name} cannot be read`;
      yield { code: 'rows-unreadable', part: name, count: unreadable, what, commands };
    }
  }
  for (const [name, { rejected, unreadable }] of Object.entries(consumers)) {
    const hasDeadLetters = deadLetterSources.some(
      ({ source, count }) => source === `consumer:${name}` && count > 0,
    );
    if (rejected > 0 && !hasDeadLetters) {
      const what = `${many(rejected, 'message')} rejected by ${name}, without a dead letter: it is on its way or already deleted`;
      yield {
        code: 'messages-rejected',
        part: name,
        count: rejected,
        what,
        commands: [shell`messages list --rejected --consumer ${name}`],
      };
    }
    if (unreadable > 0) {
      const what = `${many(unreadable, 'row')} of ${name} cannot be read`;
      yield {
        code: 'rows-unreadable',
        part: name,
        count: unreadable,
        what,
        commands: [shell`messages list --consumer ${name}`, shell`audit --since 24h`],
      };
    }
  }
}
