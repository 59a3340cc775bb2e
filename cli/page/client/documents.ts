import type { deadLetterJson } from '../../reports/dead-letters/dead-letter-text.ts';
import type { ReadingDocuments } from '../server/readings.ts';

/** The parts of the documents of `--json` that the screens pass on. docs/cli.md describes them. */

/** A dead letter of `dlq list`. */
export type DeadLetterEntry = ReturnType<typeof deadLetterJson>;

/** A dead letter of `dlq redrive`: a plan, or its outcome. */
export type PlannedDeadLetter = ReadingDocuments['redrive-plan']['deadLetters'][number];

/** The document of `audit`. */
export type ShownAudit = ReadingDocuments['audit'];

/** The document of `why`. */
export type WhyDocument = ReadingDocuments['why'];
