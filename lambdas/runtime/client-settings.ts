/**
 * Settings for the AWS SDK clients of a function: a request that hangs is given up after 5 s and tried again, three
 * times in all. The SDK's own default is to wait for ever, which a lease does not.
 *
 * @example
 * ```ts
 * const table = dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName });
 * ```
 */
export const clientSettings = {
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 1_000, requestTimeout: 5_000, throwOnRequestTimeout: true },
} as const;
