// The operator/api/ folder contains everything that calls the admin API.

import type { components } from '../../generated/admin-api.ts';

type Schemas = components['schemas'];

export type Organisation = Schemas['Organisation'];
export type ListedOrganisation = Schemas['ListedOrganisation'];
export type OrganisationPage = Schemas['OrganisationPage'];
export type LakeState = Schemas['LakeState'];
export type Key = Schemas['Key'];
export type IssuedKey = Schemas['IssuedKey'];
export type KeyPage = Schemas['KeyPage'];
export type ConsoleLink = Schemas['ConsoleLink'];
export type AuditEntry = Schemas['AuditEntry'];
export type AuditPage = Schemas['AuditPage'];

export interface Session {
  readonly token: {
    readonly name: string;
    readonly role: 'full' | 'read-only';
    readonly expires_at: string | null;
  };
  readonly expires_at: string;
}

export type BusiestOrganisations = Schemas['BusiestOrganisations'];
export type BusyOrganisation = BusiestOrganisations['organisations'][number];
/** One organisation's traffic counts. */
export type Traffic = Omit<BusyOrganisation, 'organisation_id' | 'slug' | 'name'>;
export type ServiceState = Schemas['Service'];
export type ProcessState = ServiceState['processes'][number];
export type ChoreState = ServiceState['maintenance'][number];
export type WaitingWork = ServiceState['waiting'][number];
export type PartitionedTable = ServiceState['partitions'][number];
export type ClusterNode = NonNullable<ServiceState['nodes']>[number];
