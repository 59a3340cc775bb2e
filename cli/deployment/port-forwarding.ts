/** The command that opens a tunnel to a database in a VPC. @param port - of the database */
export function portForwarding(port: number): string {
  return (
    'aws ssm start-session --target <instance> --document-name AWS-StartPortForwardingSessionToRemoteHost ' +
    `--parameters host=<host>,portNumber=${port},localPortNumber=${port}`
  );
}
