import { MailroomError } from '../../base/errors.ts';

/** The versions of a schema before and after a migration; 0 is an empty database. */
export interface Migrated {
  readonly from: number;
  readonly to: number;
}

/** @param known - the version that this version of Mailroom reads and writes. @throws `NEWER_SCHEMA` */
export function refuseNewer(version: number, known: number): void {
  if (version <= known) return;
  throw new MailroomError(
    'NEWER_SCHEMA',
    `The schema mailroom has version ${version}, and this version of cdk-mailroom knows version ${known}. Nothing was changed. Run the version that migrated it, or a newer one.`,
  );
}
