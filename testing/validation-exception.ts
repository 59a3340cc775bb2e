/**
 * What DynamoDB, EventBridge and SQS answer to a request that they cannot accept. It carries the same `name` as
 * the SDK's own error, because code tells errors apart by name.
 */
export class ValidationException extends Error {
  readonly $fault = 'client';

  constructor(message: string, name = 'ValidationException') {
    super(message);
    this.name = name;
  }
}
