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
  ]),
];
