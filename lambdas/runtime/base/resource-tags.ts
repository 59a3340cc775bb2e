/** Tag with the Mailroom's path in the app, on every resource that belongs to it. Its queues refuse messages from roles with this tag. */
export const MAILROOM_TAG = 'mailroom';

/** Tag with the service's name, on every resource of a producer or a consumer. */
export const SERVICE_TAG = 'mailroom:service';

/** Tag with the consumer's name, on every resource that belongs to it. */
export const CONSUMER_TAG = 'mailroom:consumer';
