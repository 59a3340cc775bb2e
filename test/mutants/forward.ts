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
    ['a bridge takes every version', 'version: Number.MAX_SAFE_INTEGER,', 'version: 1,'],
  ]),
  ...mutantsOf('forward/forward-target.ts', 'forward targets', [
    ['too large is a property of the event', "(result.refusal === 'too-large' || result.refusal === 'invalid')", "(result.refusal === 'invalid')"],
    ['invalid is a property of the event', "(result.refusal === 'too-large' || result.refusal === 'invalid')", "(result.refusal === 'too-large')"],
    ['headers count in the size of an entry', 'Buffer.byteLength(body) + names', 'Buffer.byteLength(body)'],
  ]),
  ...mutantsOf('forward/envelope-text.ts', 'forward', [
    ['a bracket in a string is text', 'at = end;', ''],
  ]),
];
