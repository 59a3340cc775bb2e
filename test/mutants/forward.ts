import { type Mutant, mutantsOf } from './mutant.ts';

/** The rules of bridges. */
// biome-ignore format: a line for each mutant
export const forwardMutants: readonly Mutant[] = [
  ...mutantsOf('forward/kafka-target.ts', 'targets', [
    ['one Kafka message is under way', 'const results = turn.then(() => sendAll(entries));', 'const results = sendAll(entries);'],
    ['after a failure, nothing more is sent to Kafka', 'break;', ''],
    ['a Kafka producer that failed is not used again', 'connection.drop(producer); // its', '// its'],
  ]),
  ...mutantsOf('forward/send-batches.ts', 'forward', [
    ['an event that is refused with others is sent alone', 'if (result === undefined || !isPermanent(result)) continue;', 'continue;'],
    ['a worker that has lost its message does not send it', 'if (next.signal.aborted) next', 'if (false) next'],
    ['each result is that of its entry', 'Promise.resolve(results[i] ??', 'Promise.resolve(results[0] ??'],
    ['an entry that was sent alone has the result of that call', 'final[i] = (await', '(await'],
    ['an entry without a result was not delivered', "refused('unavailable', 'NO_ANSWER', 'it did not answer for it')", '({ ok: true, place: {} })'],
    ['after a call that throws, each entry is retried', "refused('unavailable', errorCode(error), errorMessage(error))", "refused('invalid', errorCode(error), errorMessage(error))"],
    ['after a call that throws, no entry was delivered', "refused('unavailable', errorCode(error), errorMessage(error))", '({ ok: true, place: {} })'],
    ['a call without an answer in time is retried', "refused('unavailable', 'TIMEOUT'", "refused('invalid', 'TIMEOUT'"],
    ['a target that does not answer in time is reset', 'target.reset?.();', ''],
    ['a call has no more entries than the target takes', 'batch.length === limits.entries ||', ''],
    ['a call has no more bytes than the target takes', '|| bytes > limits.bytes', ''],
  ]),
  ...mutantsOf('forward/forward.ts', 'forward', [
    ['an event that the target never takes is rejected', 'if (isPermanent(result)) throw', 'if (false) throw'],
    ['an event that the target may take later is not rejected', 'if (isPermanent(result)) throw', 'throw'],
    ['an entry that fails fails its message', "throw new MailroomError('FORWARD_FAILED', text);", 'return { forwardedTo: name, place: {} };'],
    ['the body is the text of the message', 'const body = envelopeText(ctx.body);', 'const body = JSON.stringify(JSON.parse(ctx.body).detail);'],
    ['an event that is too large is not sent', 'tooLarge(to, entry) ??', ''],
    ['a bridge names itself', "const bridge = String(ctx.logFields.consumer);", "const bridge = '';"],
    ['a duplicate on the first attempt is reported', '...(isFirst && { neverSent: true })', ''],
    ['a duplicate on a later attempt is not reported', '...(isFirst && { neverSent: true })', '...{ neverSent: true }'],
    ['a bridge takes every version', 'version: Number.MAX_SAFE_INTEGER,', 'version: 1,'],
  ]),
  ...mutantsOf('forward/forward-target.ts', 'forward targets', [
    ['too large is a property of the event', "(result.refusal === 'too-large' || result.refusal === 'invalid')", "(result.refusal === 'invalid')"],
    ['invalid is a property of the event', "(result.refusal === 'too-large' || result.refusal === 'invalid')", "(result.refusal === 'too-large')"],
    ['headers count in the size of an entry', 'Buffer.byteLength(body) + names', 'Buffer.byteLength(body)'],
  ]),
  ...mutantsOf('forward/message-grammar.ts', 'message-grammar', [
    ['an event that cannot be sent is rejected alone', "return refused(isTooLarge ? 'too-large' : 'invalid', errorCode(error), errorMessage(error));", 'throw error;'],
    ['the answer to a message is that of its event', 'rejection ?? answers[sent++] ??', 'answers[sent++] ?? rejection ??'],
    ['no message, no call', 'messages.length === 0 ? [] : await send(messages)', 'await send(messages)'],
    ['a fixed address is checked when the target is made', "throw new MailroomError('BAD_ARGUMENT', `${target}: ${name}", "return () => given; throw new MailroomError('BAD_ARGUMENT', `${target}: ${name}"],
    ['an address is a string', "if (typeof text !== 'string') throw", "if (false) throw"],
    ['a subject has no white space', "if (/[\\s\\p{Cc}\\p{Cs}]/u.test(text)) return 'has white", "if (false) return 'has white"],
    ['a subject has no wildcard', "if (/[*>]/.test(text)) return", 'if (false) return'],
    ['a subject has no empty token', "if (text.split('.').includes('')) return", 'if (false) return'],
    ['a subject is not one of NATS itself', "return 'belongs to NATS itself';", "return undefined;"],
    ['a subject fits into a line of the protocol', 'return longerThan(SUBJECT_MAX_BYTES, text);', 'return undefined;'],
    ['a short string of AMQP has 255 bytes', 'longerThan(255, text)', 'undefined'],
    ['an attribute is not empty', "text === '' ? 'is empty' : awsText(text)", 'awsText(text)'],
    ['a message has a size', "if (bytes > maxBytes) throw new NotSendable(", "if (false) throw new NotSendable("],
  ]),
  ...mutantsOf('forward/jet-stream-target.ts', 'message-grammar targets', [
    ['a message id of NATS names its bridge', 'msgID: printable(bridgedId(entry))', 'msgID: printable(entry.event.eventId)'],
    ['a message id of NATS has one line', 'msgID: printable(bridgedId(entry))', 'msgID: bridgedId(entry)'],
    ['a header of NATS has one line', 'headers.set(name, printable(value))', 'headers.set(name, value)'],
  ]),
  ...mutantsOf('forward/aws-answers.ts', 'targets message-grammar', [
    ['an address of AWS is not the fault of an event', "refusal.refusal === 'invalid' && entries === 1", 'false'],
    ['a deduplication id names its bridge', 'MessageDeduplicationId: keyOf(bridgedId(entry), FIFO_KEY)', 'MessageDeduplicationId: keyOf(entry.event.eventId, FIFO_KEY)'],
    ['an entry that is refused by itself is rejected', 'results[Number(Id)] = awsRefusal(Code, Message);', "results[Number(Id)] = refused('missing', Code ?? '', Message ?? '');"],
    ['a body is checked', "accepted('body', entry.body, awsText)", 'entry.body'],
    ['an attribute is checked', 'accepted(`attribute ${name}`, value, awsAttribute)', 'value'],
  ]),
  ...mutantsOf('forward/envelope-text.ts', 'forward', [
    ['a bracket in a string is text', 'at = end;', ''],
  ]),
];
