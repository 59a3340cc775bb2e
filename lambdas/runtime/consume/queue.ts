/** The queue port: the one call that a consumer makes to SQS. Receiving and deleting is Lambda's work. */
export interface Queue {
  /**
   * Says how long the message stays hidden from now on.
   *
   * @param seconds - 0 to 43,200 (12 hours, SQS's most); 0 shows it at once
   */
  changeVisibility(receiptHandle: string, seconds: number): Promise<void>;
}

/** The longest visibility timeout of a message: 12 hours (SQS API reference, ChangeMessageVisibility). */
export const VISIBILITY_MAX_S = 43_200;
