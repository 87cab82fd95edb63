/** A permission to spend from an account of the ledger, within limits. Amounts are atomic units. */
export type AuthorizationRecord = {
  readonly id: string
  readonly app_id: string
  /** The account that pays. */
  readonly account: string
  readonly grantee: string
  readonly spend_limit: string
  readonly max_per_tx: string | null
  readonly daily_limit: string | null
  readonly allowed_targets: readonly string[] | null
  /** The hash of the key that spends, and the first 8 characters of its text. */
  readonly key_hash: string
  readonly prefix: string
  readonly created_at: string
  readonly expires_at: string
  /** Set once; from then on its key is dead. */
  readonly revoked_at: string | null
}
