import type { Duration, RemovalPolicy } from 'aws-cdk-lib';
import type { IRole } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';

/** Properties of a `MailroomBus`. */
export interface MailroomBusProps {
  /**
   * The removal policy of the bus and its archive. A retained bus does not block a new deployment, which creates another bus.
   *
   * @default RETAIN_ON_UPDATE_OR_DELETE
   */
  readonly removalPolicy?: RemovalPolicy;
  /** Archives every event of the bus for replays, for this many whole days. @default no archive */
  readonly archive?: Duration;
  /** Encrypts the bus and its archive. The key's policy must let EventBridge use it. @default a key that AWS owns */
  readonly encryptionKey?: IKey;
  /** A fixed name, by which other apps import the bus. @default a name that is derived from the stack and its id */
  readonly eventBusName?: string;
  /**
   * Lets Mailrooms of other stacks and apps join it. The bus that a `Mailroom` makes for itself is not shared.
   *
   * @default true
   */
  readonly shared?: boolean;
  /**
   * The roles of scheduled audits of other apps: Mailrooms on the bus let them read single inbox rows and dead letters. Audits of Mailrooms in
   * this app are always listed. Deploy the other Mailrooms and the stacks of their consumers again after a change: an import takes no lock.
   *
   * @default none
   */
  readonly auditors?: readonly IRole[];
}
