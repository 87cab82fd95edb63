import type { PublishChoice } from '@tollbase/contract/applications'
import type { OwnQuota } from './quota.ts'

export type ApplicationRecord = {
  readonly app_id: string
  /** Names the application's schema and its tickets; never reused. */
  readonly number: number
  readonly name: string
  readonly description: string | null
  /** Lower case, or null where only the operator owns it. */
  readonly owner_address: string | null
  /** Milliseconds since 1970 from which the owner decides about money; from the beginning where it is not there. */
  readonly owner_trusted_from_ms?: number
  /** The owner before one whom a key has named: until that one is trusted, it can take the application back. */
  readonly owner_before?: string | null
  readonly created_at: string
  readonly status: 'active' | 'archived'
  /** The service that it was moved from: the signed checkpoint of its log there, and the key that signed it. */
  readonly moved_from?: { readonly checkpoint: string; readonly key: string }
  /** Set by the operator. */
  readonly quota?: OwnQuota | null
  /** The part of its log that gets to other chains; roots where it is not there. */
  readonly publish?: PublishChoice
}
