import { Token } from 'aws-cdk-lib';
import type { IEventBus } from 'aws-cdk-lib/aws-events';

/** Names a bus for comparison within an app: by account, region and name if they are known, otherwise by its path. */
export function identityOf(bus: IEventBus): string {
  const name = nameOf(bus);
  const { account, region } = bus.env;
  return Token.isUnresolved(name) ? bus.node.path : `${name} in ${account}, ${region}`;
}

/** Names a bus, to derive other names: by its fixed name if it is known, otherwise by its path. */
export function keyOf(bus: IEventBus): string {
  const name = nameOf(bus);
  return Token.isUnresolved(name) ? bus.node.path : name;
}

/** The fixed name of a bus of this app, or of an imported one. */
function nameOf(bus: IEventBus): string {
  const { physicalName } = bus as { readonly physicalName?: string };
  return physicalName !== undefined && physicalName !== '' && !Token.isUnresolved(physicalName)
    ? physicalName
    : bus.eventBusName;
}
