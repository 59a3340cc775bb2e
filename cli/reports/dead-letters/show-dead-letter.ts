import { readable, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { effectText } from '../../deployment/effects.ts';
import { lossyNumberText } from '../../terminal/exact-json.ts';
import { when } from '../../terminal/listing.ts';
import { clipped, table } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { reportOf } from '../../terminal/terminal.ts';
import { time } from '../../terminal/times.ts';
import { findOne } from './choice.ts';
import { deadLetterJson } from './dead-letter-text.ts';
import { type DeadLetter, type DeadLetterSource, deadLetterSource } from './dead-letters.ts';

interface ShowOptions {
  readonly source: string;
  readonly id: string;
  readonly payload?: boolean;
}

/** One dead letter, with `payload` its body too. */
export async function showDeadLetter(deployment: Deployment, options: ShowOptions) {
  const { payload = false, id } = options;
  const source = deadLetterSource(deployment.directory, options.source);
  const deadLetter = await findOne(deployment, source, id);
  const body = payload ? await bodyOf(deployment, deadLetter) : undefined;
  const next = deployment.commandLine(nextCommand(source, deadLetter));
  const status = readable(deadLetter.row)?.status ?? null;
  const json = {
    source: source.name,
    ...deadLetterJson(deadLetter),
    status,
    next,
    ...(body !== undefined && { body }),
  };
  const lines = body === undefined ? [] : linesOf(body);
  return reportOf(json, { deadLetter, next, lines }, (seen) =>
    [
      deadLetterText(source, seen.deadLetter, deployment.clock.now()),
      `  ${paint.dim(seen.next)}`,
      ...seen.lines,
    ].join('\n'),
  );
}

/** The stored text: the body of the message, or the envelope of a DEAD event. */
async function bodyOf({ stored }: Deployment, { received, id }: DeadLetter): Promise<string | null> {
  if (received !== undefined) return received.body;
  return (await stored.outbox.byId(id))?.envelope ?? null;
}

/** A body line by line: indented if it is JSON whose numbers keep their digits, else as it is. */
function linesOf(body: string | null): string[] {
  if (body === null) return ['', 'Its payload cannot be read.'];
  if (lossyNumberText(body) !== undefined) return ['', body];
  try {
    return ['', ...JSON.stringify(JSON.parse(body), null, 2).split('\n')];
  } catch {
    return ['', body];
  }
}

function nextCommand(source: DeadLetterSource, { id, eventId }: DeadLetter): ShellText {
  if (eventId !== undefined) return shell`why ${eventId}`;
  return shell`dlq redrive ${source.name} ${id}`;
}

function deadLetterText({ name }: DeadLetterSource, letter: DeadLetter, now: number): string {
  const {
    id,
    eventId,
    type,
    sentAt,
    expiresAt,
    fingerprint,
    lastError,
    received,
    row,
    effects = [],
  } = letter;
  const optional = (label: string, text: string | undefined) =>
    text === undefined ? [] : [[label, clipped(text)]];
  return table(
    ['dead letter', clipped(id)],
    [
      ['source', name],
      ['event', eventId ?? 'its event cannot be read'],
      ['type', clipped(type ?? 'unknown')],
      ['sent', sentAt === undefined ? '?' : `${time(sentAt)}, ${when(sentAt, now)}`],
      ['expires', expiresAt === undefined ? 'never' : `${time(expiresAt)}, ${when(expiresAt, now)}`],
      ...optional('cause', fingerprint),
      ...(lastError === fingerprint ? [] : optional('last error', lastError)),
      ...optional('inbox row', statusOf(row)),
      ...effects.map((effect) => [`effect ${clipped(effect.effect)}`, effectText(effect)]),
      ...(received === undefined ? [] : [['body', `${Buffer.byteLength(received.body)} bytes`]]),
    ],
  );
}

function statusOf(row: DeadLetter['row'] | UnreadableRow): string | undefined {
  return row === undefined ? undefined : (readable(row)?.status ?? 'cannot be read');
}
