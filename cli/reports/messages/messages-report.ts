import type { Deployment } from '../../deployment/deployment.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { withInbox } from '../../deployment/source-consumer.ts';
import { type ExportFormat, exported } from '../../terminal/export.ts';
import {
  byCause,
  type Cause,
  causesText,
  MORE_GROUPED,
  MORE_LISTED,
  moreText,
  mostFrequent,
  newest,
} from '../../terminal/listing.ts';
import { paint } from '../../terminal/paint.ts';
import { shell } from '../../terminal/shell.ts';
import { type Report, reportOf } from '../../terminal/terminal.ts';
import { type ListedMessage, type MessageChoice, messagesOf, messagesText } from './list-messages.ts';

/** The columns of `--format csv`. */
const COLUMNS: Readonly<Record<keyof ListedMessage, true>> = {
  consumer: true,
  eventId: true,
  status: true,
  type: true,
  attempt: true,
  maxAttempts: true,
  at: true,
  nextAt: true,
  reason: true,
  fingerprint: true,
  lastError: true,
  unfinished: true,
  outOfTime: true,
  limited: true,
  expiresAt: true,
};

/** The default of `--limit`. */
export const LISTED_MAX = 100;

/** The options of `messages list`. */
interface MessagesOptions extends Omit<MessageChoice, 'limit'> {
  readonly limit?: number;
  readonly consumer?: string;
  readonly format?: ExportFormat;
}

/** The document of `messages list --json`; with `--by cause` it has the causes. */
type MessagesDocument =
  | { readonly messages: readonly ListedMessage[]; readonly more: boolean }
  | { readonly causes: readonly MessageCause[]; readonly more: boolean };

/** A consumer's messages of one cause. */
export interface MessageCause extends Cause {
  readonly consumer: string;
}

/** The messages that failed, were rejected or wait. */
export async function listMessages(
  deployment: Deployment,
  options: MessagesOptions,
): Promise<Report<MessagesDocument>> {
  const { directory, terminal, clock } = deployment;
  const { limit = LISTED_MAX } = options;
  const consumers =
    options.consumer === undefined
      ? [...directory.consumers, ...(directory.sourceConsumers ?? [])]
      : [
          // Only the queue of a consumer can prove that a published event waits for it.
          options.waiting ? deployment.consumer(options.consumer) : withInbox(deployment, options.consumer),
        ];
  const found = await eachOf(consumers, (consumer) =>
    messagesOf(deployment, consumer, { ...options, limit }),
  );
  const messages = found.flatMap(({ items }) => items).sort(newest);
  const now = clock.now();
  if (options.by !== undefined) {
    const more = found.some((list) => list.more);
    const causes = found
      .flatMap(({ items }, index) => causesOf(consumers[index]?.name ?? '', items))
      .sort(mostFrequent);
    const named = causes.map((cause) => ({ ...cause, fingerprint: cause.fingerprint ?? unknownOf(cause) }));
    return reportOf({ causes, more }, named, (seen) => causesText(seen, now) + moreText(more, MORE_GROUPED));
  }
  const listed = messages.slice(0, limit);
  const more = messages.length > listed.length || found.some((list) => list.more);
  const { format } = options;
  if (format !== undefined && more) terminal.say(MORE_LISTED);
  return reportOf({ messages: listed, more }, listed, (seen) =>
    format === undefined
      ? messagesText(seen, now) + moreText(more, MORE_LISTED) + nextText(seen, deployment)
      : exported(listed, format, COLUMNS),
  );
}

/** Groups a consumer's messages by cause. */
function causesOf(consumer: string, messages: readonly ListedMessage[]): MessageCause[] {
  return byCause(messages).map((cause) => ({ consumer, ...cause }));
}

/** An unknown cause in text: the fingerprint of a known one begins with the consumer, too. */
function unknownOf({ consumer }: MessageCause): string {
  return `${consumer} unknown cause`;
}

/** The command that comes next for a rejected message: it shows where its dead letter is, if there is still one. */
function nextText(
  messages: readonly ListedMessage[],
  { commandLine }: Pick<Deployment, 'commandLine'>,
): string {
  const rejected = messages.find(({ status }) => status === 'REJECTED');
  if (rejected === undefined) return '';
  const command = commandLine(shell`why ${rejected.eventId}`);
  return `\n\nTo see what to do about the first rejected one:\n  ${paint.dim(command)}`;
}
