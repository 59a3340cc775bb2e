/**
 * The error that DynamoDB, EventBridge and SQS return for an invalid request. It has the same `name` as the SDK's own error,
 * because code identifies errors by name.
 */
export class ValidationException extends Error {
  readonly $fault = 'client';

  constructor(message: string, name = 'ValidationException') {
    super(message);
    this.name = name;
  }
}
