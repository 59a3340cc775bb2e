import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { Signer } from '@aws-sdk/rds-signer';
import { clientSettings } from '../../base/client-settings.ts';
import { jsonObject } from '../../base/json.ts';
import type { DatabaseAddress } from './database-address.ts';

/** Connections of one process. A relay uses four. */
export const CONNECTIONS_MAX = 5;

/** Below the 30 seconds after which RDS Proxy and a frozen function would find a connection dead, milliseconds. */
export const IDLE_MS = 20_000;

/** Returns the password for a new connection: a token of IAM, the current password of the secret, or the one of the address. */
export async function passwordOf({ host, port, user, ...how }: DatabaseAddress): Promise<string> {
  if (how.iam) return new Signer({ hostname: host, port, username: user }).getAuthToken();
  if (how.secretArn === undefined) return how.password ?? '';
  const client = new SecretsManagerClient(clientSettings);
  const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId: how.secretArn }));
  return String(jsonObject(SecretString ?? '')?.password ?? '');
}
