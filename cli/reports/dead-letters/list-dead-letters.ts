import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { checkBodies } from '../../deployment/invoke.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { shown } from '../../terminal/escaped.ts';
import { EXIT } from '../../terminal/io.ts';
import { byCause } from '../../terminal/listing.ts';
import { many } from '../../terminal/output.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import { changingRule } from '../checks/rule-checks.ts';
import { orderReader } from '../order/order-of-aggregate.ts';
import { deadLetterJson, deadLettersText, isGrouped } from './dead-letter-text.ts';
import {
  type DeadLetter,
  type DeadLetterSource,
  deadLetterSource,
  deadLetterSources,
  putBack,
  type ReceivedDeadLetters,
  receiveDeadLetters,
} from './dead-letters.ts';
import { judgedText } from './judged-text.ts';
import { type JudgeDeps, type JudgedDeadLetter, judgeDeadLetters } from './redrive-plan.ts';
import { remediesText } from './remedies.ts';

interface DlqListOptions {
  /** @default every source */
  readonly source?: string | undefined;
  readonly by?: 'cause';
  readonly limit?: number;
  readonly verbose?: boolean;
  /** Only the document is needed. */
  readonly json?: boolean;
}

/** The default limits for each source: listed one by one, or read to be grouped. */
export const LISTED_MAX = 100;
export const GROUPED_MAX = 1_000;

/** If listing is interrupted, dead letters reappear after this many seconds. */
const LIST_HIDES_S = 15;

/** The dead letters of a source, or of every source. */
export async function listDeadLetters(deployment: Deployment, options: DlqListOptions) {
  const { directory, clock } = deployment;
  const { by, verbose = false, json = false, source: name } = options;
  const isEach = by === undefined && (verbose || json);
  const { limit = isEach ? LISTED_MAX : GROUPED_MAX } = options;
  const sources = name === undefined ? deadLetterSources(directory) : [deadLetterSource(directory, name)];
  const lists = await eachOf(sources, (source) => list(deployment, source, limit));
  const now = clock.now();
  return {
    json: listJson(lists, now, by),
    text: async () => {
      const some = lists.filter(({ total }) => total > 0);
      const judged = await eachOf(some, (found) => judgedIfGrouped(deployment, found, options));
      return listText(deployment, shown(judged), now);
    },
    exitCode: EXIT.ok,
  };
}

/** The dead letters of one source. */
export interface SourceList extends ReceivedDeadLetters {
  readonly source: DeadLetterSource;
}

async function list(deployment: Deployment, source: DeadLetterSource, limit: number): Promise<SourceList> {
  if (source.kind !== 'dead' && (await depthOf(deployment.queues, source.url)) === undefined) {
    deployment.terminal.say(`The queue of ${source.name} does not exist. mailroom status prints its URL.`);
    return { source, total: 0, deadLetters: [] };
  }
  const received = await receiveDeadLetters(deployment, source, { limit, hideS: LIST_HIDES_S });
  await putBack(deployment.queues, source, received.deadLetters);
  return { source, ...received };
}

/** The document of `--json`. */
export function listJson(lists: readonly SourceList[], now: number, by?: 'cause') {
  return {
    at: now,
    deadLetterSources: lists.map(({ source, total, deadLetters }) => ({
      source: source.name,
      count: total,
      ...(by === undefined
        ? { deadLetters: deadLetters.map(deadLetterJson) }
        : { causes: causesOf(deadLetters), more: total > deadLetters.length }),
    })),
  };
}

function causesOf(deadLetters: readonly DeadLetter[]) {
  return byCause(
    deadLetters.map(({ id, eventId = id, fingerprint = null, sentAt = null }) => ({
      eventId,
      fingerprint,
      at: sentAt,
    })),
  );
}

interface ShownList extends SourceList {
  readonly grouped: boolean;
  /** With the verdict of a redrive; absent if it is not grouped, or could not be checked. */
  readonly judged?: readonly JudgedDeadLetter[] | undefined;
}

/** Adds the verdicts of a redrive to a list that is shown by cause: a cause is fixed once the deployed code accepts its messages. */
async function judgedIfGrouped(
  deployment: Deployment,
  found: SourceList,
  { by, verbose }: DlqListOptions,
): Promise<ShownList> {
  const { stored, clients, clock, terminal } = deployment;
  const { source, deadLetters } = found;
  if (by === undefined && !isGrouped(deadLetters.length, { verbose })) return { ...found, grouped: false };
  const check: JudgeDeps['check'] = (consumer, bodies) => checkBodies(clients.lambda, consumer, bodies);
  try {
    const now = clock.now();
    const changing: JudgeDeps['changing'] = (consumer) => changingRule(deployment, consumer);
    const deps = { stored, check, now, changing, orders: orderReader({ ...deployment, now }) };
    const judged = await judgeDeadLetters(deps, source, deadLetters);
    return { ...found, grouped: true, judged };
  } catch (error) {
    terminal.say(
      `Not checked whether the dead letters of ${source.name} would run again: ${errorMessage(error)}`,
    );
    return { ...found, grouped: true };
  }
}

/** The lists as text, each with the command that comes next. */
export function listText(
  deployment: Pick<Deployment, 'clock' | 'commandLine' | 'awsLine'>,
  lists: readonly ShownList[],
  now: number,
): string {
  if (lists.length === 0) return 'No dead letters.';
  const texts = lists.map(({ source, total, deadLetters, grouped, judged }) => {
    const more = total > deadLetters.length ? `, ${deadLetters.length} ${grouped ? 'read' : 'shown'}` : '';
    const lines = deadLetters.map((deadLetter) => ({ deadLetter }));
    return [
      `${source.name}: ${total}${more}`,
      judged === undefined
        ? deadLettersText(lines, now, { grouped })
        : judgedText(source, judged, now, grouped),
      ...(judged === undefined ? [] : remediesText(deployment, source, judged, deadLetters)),
      ...planHint(deployment, source, judged),
    ].join('\n');
  });
  return texts.join('\n\n');
}

/** The command that plans a redrive, if it would send something. */
function planHint(
  { commandLine }: Pick<Deployment, 'commandLine'>,
  { name }: DeadLetterSource,
  judged: readonly JudgedDeadLetter[] | undefined,
): string[] {
  const plan = `  ${commandLine(shell`dlq redrive ${name}`)}`;
  if (judged === undefined) return ['To see which would run again:', plan];
  const runs = judged.filter(({ verdict }) => verdict === 'runs' || verdict === 'handled').length;
  return runs === 0 ? [] : [prose(`${many(runs, 'dead letter')} can be redriven. To plan it:`), plan];
}
