import { type Mutant, mutantsOf } from './mutant.ts';

/** The storage in PostgreSQL, as far as no server is needed; `test/postgres/statement-holes.test.ts` takes clauses of statements away. */
// biome-ignore format: a line for each mutant
export const postgresMutants: readonly Mutant[] = [
  ...mutantsOf('postgres/claim-range.ts', 'claim-range', [
    ['a relay reads the whole queue again and again', 'const isFull = began >= fullAt || began < endedAt;', 'const isFull = bound === FROM_THE_START;'],
    ['the clock of a relay that is set back postpones no full reading', 'began >= fullAt || began < endedAt', 'began >= fullAt'],
    ['claims begin behind the oldest live row', 'isFull ? FROM_THE_START : before', 'FROM_THE_START'],
    ['a full reading replaces the bound', 'isFull || bound === before', 'bound === before'],
    ['a claim that began before a full reading does not move the bound past it', '(isFull || bound === before)', 'true'],
    ['one claim at a time reads everything', 'if (isFull) fullAt = began + MINUTE_MS;', ''],
    ['full readings of a long queue take a tenth of the time', 'Math.max(FULL_EVERY_MS, PAUSES_PER_READING * (endedAt - began))', 'FULL_EVERY_MS'],
  ]),
];
