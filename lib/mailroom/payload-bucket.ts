import { Aws, Duration, Lazy, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import type { Construct } from 'constructs';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import {
  ABOVE_MAX_BYTES,
  ABOVE_MIN_BYTES,
  LIFETIME_MAX_DAYS,
  payloadSettings,
} from '../../lambdas/runtime/base/payload-config.ts';
import type { Subscription } from '../../lambdas/runtime/events/data-filter.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { payloadKey } from '../../lambdas/runtime/events/payloads.ts';
import { isExternalEvent } from '../checks/filter-problems.ts';
import { grantTo } from '../checks/granted.ts';
import { refuse, refuseNames, say, unless } from '../checks/refusal.ts';
import { defaultInboxRetention, QUEUE_RETENTION_MAX } from '../checks/retentions.ts';

/** Payloads that are kept in S3. */
export interface PayloadOptions {
  /** The size of a payload as JSON above which it is kept in S3, from `1 KB` to `384 KB`; a KB has 1,024 bytes. */
  readonly above: `${number} KB`;
  /**
   * The time after which an object expires, in whole days. It must exceed the inbox retention of every consumer, which exceeds the retentions of its queues and of
   * the archive, by a day; the rest is the time for which an event with an object can be scheduled ahead.
   *
   * @default 30 days more than the default inbox retention: 65 days without an archive
   */
  readonly lifetime?: Duration;
  /**
   * Events that always carry their payload, because something reads it on the bus: the filter of a consumer, or a rule of yours. One that is too large for an
   * event is refused when it is committed.
   *
   * @default none
   */
  readonly inline?: readonly EventRef[];
}

/** Properties of the bucket of payloads. */
interface PayloadBucketProps {
  readonly payloads?: PayloadOptions | undefined;
  readonly encryptionKey?: IKey | undefined;
}

const NAMES: PropNames<PayloadOptions> = { above: 'required', lifetime: 'optional', inline: 'optional' };

/** The time by which an object outlasts the inbox rows of its event: it is written before the event's transaction. */
const SPARE_DAYS = 1;

/** The default time for which an event with an object can be scheduled ahead. */
const AHEAD_DAYS = 30;

const KB = 1024;

/** The bucket of a Mailroom's payloads: encrypted, reached by TLS only, never public, and emptied by its lifecycle. */
export class PayloadBucket extends Bucket {
  private readonly options: PayloadOptions;
  private readonly lifetime: Duration;
  private readonly key: IKey | undefined;
  /** The longest inbox retention of its consumers so far, days. */
  private retentionDays = 1;

  constructor(
    scope: Construct,
    id: string,
    options: PayloadOptions,
    { encryptionKey }: PayloadBucketProps,
    archive: Duration | undefined,
  ) {
    const what = `payloads of ${scope.node.path}`;
    refuseNames(what, options, NAMES);
    const lifetime = options.lifetime ?? defaultLifetime(archive);
    refuse(what, [...aboveProblems(options.above), ...lifetimeProblems(lifetime, archive)]);
    super(scope, id, {
      encryption: encryptionKey === undefined ? BucketEncryption.S3_MANAGED : BucketEncryption.KMS,
      encryptionKey,
      bucketKeyEnabled: encryptionKey !== undefined,
      enforceSSL: true,
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
      lifecycleRules: [{ id: 'PayloadsExpire', expiration: lifetime }],
      // Also with DESTROY: CloudFormation does not delete a bucket that has objects, and its stack would end in DELETE_FAILED.
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    this.options = options;
    this.lifetime = lifetime;
    this.key = encryptionKey;
  }

  /** The reasons why a consumer cannot receive events whose payloads are here. @internal */
  _consumerProblems(
    events: readonly Subscription[],
    fairBy: string | undefined,
    inboxRetention: Duration,
  ): string[] {
    return [
      ...this._filterProblems(events, fairBy),
      ...unless(
        this.lifetime.toMilliseconds() >= inboxRetention.plus(Duration.days(SPARE_DAYS)).toMilliseconds(),
        `inboxRetention is ${say(inboxRetention)}, but payloads.lifetime of the Mailroom is ${say(this.lifetime)}: a message could be handled after the object of its payload has expired. ` +
          `Raise payloads.lifetime to more than ${say(inboxRetention)}, or lower inboxRetention.`,
      ),
    ];
  }

  /** The events whose payloads may be here. @internal */
  _stored(events: readonly Subscription[]): readonly Subscription[] {
    return events.filter((event) => !isExternalEvent(event) && !this.isInline(event));
  }

  /** The reasons why EventBridge would not route events whose payloads are here. @internal */
  _filterProblems(events: readonly Subscription[], fairBy: string | undefined): string[] {
    const stored = this._stored(events);
    const remedy = 'List the event in payloads.inline of the Mailroom';
    return [
      ...stored
        .filter(({ filter }) => filter !== undefined)
        .map(
          ({ source, type }) =>
            `events contains ${type} of "${source}" with a filter, but its Mailroom has payloads: EventBridge finds no data in an event whose payload is in S3, so such an event would never arrive. ` +
            `${remedy}, or remove the filter and decide in the handler.`,
        ),
      ...(fairBy?.startsWith('$.detail.data.') ? stored.slice(0, 1) : []).map(
        ({ type }) =>
          `queue.fairBy is "${fairBy}", but its Mailroom has payloads, and ${type} has no data on the bus if its payload is in S3. ${remedy}, or use another path.`,
      ),
    ];
  }

  /** Lets a function load payloads. @internal */
  _letRead(consumer: LambdaFunction, service: string, inboxRetention: Duration): void {
    this.retentionDays = Math.max(this.retentionDays, inboxRetention.toDays());
    this.allow(consumer, service, ['s3:GetObject'], ['kms:Decrypt']);
    // Otherwise S3 denies an object that does not exist, and a denial is an outage.
    grantTo(this, { grantee: consumer, actions: ['s3:ListBucket'], resourceArns: [this.bucketArn] });
  }

  /** Lets a function write payloads. @internal */
  _letWrite(producer: LambdaFunction, service: string): void {
    this.allow(producer, service, ['s3:PutObject'], ['kms:Decrypt', 'kms:GenerateDataKey']);
  }

  private allow(grantee: LambdaFunction, service: string, actions: string[], keyActions: string[]): void {
    grantTo(this, { grantee, actions, resourceArns: [this.arnForObjects(payloadKey('*'))] });
    if (this.key !== undefined)
      grantTo(this, {
        grantee,
        actions: keyActions,
        resourceArns: [this.key.keyArn],
        conditions: { StringEquals: { 'kms:ViaService': `s3.${Stack.of(this).region}.${Aws.URL_SUFFIX}` } },
      });
    for (const [name, value] of Object.entries(this.environment(service)))
      grantee.addEnvironment(name, value);
  }

  /** The variables of a function that loads or writes payloads. It publishes the events of its own service only, so their types name them. */
  private environment(service: string): Record<string, string> {
    const { above, inline = [] } = this.options;
    const encoded = payloadSettings.encode({
      bucket: this.bucketName,
      aboveBytes: bytesOf(above),
      aheadDays: 0,
      inline: [...new Set(inline.flatMap(({ source, type }) => (source === service ? type : [])))],
    });
    // Known when all consumers are.
    const aheadDays = Lazy.string({
      produce: () => String(Math.max(0, this.lifetime.toDays() - this.retentionDays - SPARE_DAYS)),
    });
    return { ...encoded, MAILROOM_PAYLOADS_AHEAD_DAYS: aheadDays };
  }

  private isInline({ source, type }: EventRef): boolean {
    return (this.options.inline ?? []).some((event) => event.source === source && event.type === type);
  }
}

/** Makes the bucket of a Mailroom that has payloads. @throws `BAD_SETTINGS` */
export function payloadBucketOf(
  mailroom: Construct,
  props: PayloadBucketProps,
  archive: Duration | undefined,
): PayloadBucket | undefined {
  if (props.payloads === undefined) return undefined;
  return new PayloadBucket(mailroom, 'Payloads', props.payloads, props, archive);
}

function defaultLifetime(archive: Duration | undefined): Duration {
  const queues = { queueRetention: QUEUE_RETENTION_MAX, deadLetterRetention: QUEUE_RETENTION_MAX };
  return Duration.days(defaultInboxRetention({ ...queues, archive }).toDays() + AHEAD_DAYS);
}

function bytesOf(above: string): number {
  return Number(/^(\d{1,9}) KB$/.exec(above)?.[1]) * KB;
}

function aboveProblems(above: unknown): string[] {
  const bytes = bytesOf(String(above));
  const range = `from "${ABOVE_MIN_BYTES / KB} KB" to "${ABOVE_MAX_BYTES / KB} KB"`;
  if (Number.isNaN(bytes))
    return [
      `above is ${JSON.stringify(above)}, but must be a size in whole KB, ${range}. Write it as "200 KB".`,
    ];
  return unless(
    bytes >= ABOVE_MIN_BYTES && bytes <= ABOVE_MAX_BYTES,
    `above is "${above}", but must be ${range}: an outbox row always takes a payload of ${ABOVE_MAX_BYTES / KB} KB, and larger ones would be refused before a higher threshold applies. Use "200 KB".`,
  );
}

function lifetimeProblems(lifetime: Duration, archive: Duration | undefined): string[] {
  const days = lifetime.toDays({ integral: false });
  const min = (archive?.toDays({ integral: false }) ?? 0) + SPARE_DAYS;
  return [
    ...unless(
      Number.isInteger(days) && days >= 1 && days <= LIFETIME_MAX_DAYS,
      `lifetime is ${say(lifetime)}, but must be a whole number of days from 1 to ${LIFETIME_MAX_DAYS}: S3 expires objects by days. Round it up to days.`,
    ),
    ...unless(
      days >= min,
      `lifetime is ${say(lifetime)}, but must be more than the archive, ${archive && say(archive)}: a replayed event would have no payload. Raise it, or omit it.`,
    ),
  ];
}
