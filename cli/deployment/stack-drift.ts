import {
  type CloudFormationClient,
  DescribeStackDriftDetectionStatusCommand,
  DetectStackDriftCommand,
  type PropertyDifference,
  paginateDescribeStackResourceDrifts,
  type StackResourceDrift,
} from '@aws-sdk/client-cloudformation';
import type { Clock } from '../../lambdas/runtime/base/clock.ts';

/**
 * The IAM actions that drift detection needs besides those that read each resource (CloudFormation user guide, "Considerations when detecting drift").
 */
export const DRIFT_ACTIONS = [
  'cloudformation:DetectStackDrift',
  'cloudformation:DetectStackResourceDrift',
  'cloudformation:DescribeStackDriftDetectionStatus',
  'cloudformation:DescribeStackResourceDrifts',
  'cloudformation:BatchDescribeTypeConfigurations',
];

/** The result of CloudFormation's drift detection for a stack. */
export interface StackDrift {
  /** The number of resources that it compared. */
  readonly compared: number;
  readonly drifted: readonly DriftedResource[];
  /** Why some resources were not compared, in CloudFormation's words. Absent: all were whose types it supports. */
  readonly fault?: string | undefined;
}

/**
 * A resource that differs from its template.
 */
export interface DriftedResource {
  readonly logicalId: string;
  readonly physicalId: string;
  readonly type: string;
  /** The members that differ; none if the resource is gone. */
  readonly members: readonly DriftedMember[];
}

/** A member of a resource. */
interface DriftedMember {
  /** Its path, as a JSON pointer: `/RedrivePolicy/maxReceiveCount`. */
  readonly path: string;
  /** The values as CloudFormation writes them; `null`: none. */
  readonly declared: string | null;
  readonly deployed: string | null;
}

/** The wait between two looks at a detection. It takes seconds to minutes. */
const LOOK_MS = 2_000;

/** A detection that takes longer is not waited for. */
const DETECTION_MS_MAX = 10 * 60_000;

const DRIFTED = /^(MODIFIED|DELETED)$/;
const COMPARED = /^(MODIFIED|DELETED|IN_SYNC)$/;

/** Starts CloudFormation's drift detection for a stack, waits until it ends, and reads its result. It changes nothing. */
export async function detectDrift(
  client: CloudFormationClient,
  StackName: string,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<StackDrift> {
  const { StackDriftDetectionId } = await client.send(new DetectStackDriftCommand({ StackName }));
  const until = clock.now() + DETECTION_MS_MAX;
  for (;;) {
    const { DetectionStatus, DetectionStatusReason } = await client.send(
      new DescribeStackDriftDetectionStatusCommand({ StackDriftDetectionId }),
    );
    if (!/_IN_PROGRESS$/.test(DetectionStatus ?? '')) {
      const fault = /_FAILED$/.test(DetectionStatus ?? '')
        ? (DetectionStatusReason ?? 'it failed')
        : undefined;
      return { ...(await readDrifts(client, StackName)), fault };
    }
    if (signal.aborted || clock.now() > until)
      return {
        compared: 0,
        drifted: [],
        fault: `it has not ended after ${DETECTION_MS_MAX / 60_000} minutes`,
      };
    await clock.sleep(LOOK_MS, signal);
  }
}

async function readDrifts(
  client: CloudFormationClient,
  StackName: string,
): Promise<Pick<StackDrift, 'compared' | 'drifted'>> {
  const found: StackResourceDrift[] = [];
  for await (const page of paginateDescribeStackResourceDrifts({ client }, { StackName }))
    found.push(...(page.StackResourceDrifts ?? []));
  const having = (status: RegExp) =>
    found.filter(({ StackResourceDriftStatus = '' }) => status.test(StackResourceDriftStatus));
  return { compared: having(COMPARED).length, drifted: having(DRIFTED).map(driftedOf) };
}

function driftedOf(found: StackResourceDrift): DriftedResource {
  const { LogicalResourceId, PhysicalResourceId, ResourceType, PropertyDifferences = [] } = found;
  return {
    logicalId: LogicalResourceId ?? '',
    physicalId: PhysicalResourceId ?? '',
    type: ResourceType ?? '',
    members: PropertyDifferences.map(memberOf),
  };
}

/** An added value has no declared one, and a removed value no deployed one; CloudFormation writes `null` for both. */
function memberOf({
  PropertyPath = '',
  ExpectedValue,
  ActualValue,
  DifferenceType,
}: PropertyDifference): DriftedMember {
  return {
    path: PropertyPath,
    declared: DifferenceType === 'ADD' ? null : (ExpectedValue ?? null),
    deployed: DifferenceType === 'REMOVE' ? null : (ActualValue ?? null),
  };
}
