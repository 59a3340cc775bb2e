/** The queue port: the one SQS call that a consumer makes. Lambda receives and deletes the messages. */
export interface Queue {
  /**
   * Hides a message for a period from now on.
   *
   * @param seconds - 0 to 43,200 (12 hours, SQS's maximum); 0 makes it visible immediately
   */
  changeVisibility(receiptHandle: string, seconds: number): Promise<void>;
}

/** The maximum visibility timeout of a message, seconds: 12 hours (SQS API reference, ChangeMessageVisibility). */
export const VISIBILITY_MAX_S = 43_200;
