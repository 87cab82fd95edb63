import type { FreeSpace } from '../../database/embedded/free-space.ts'

/** The service's knowledge of itself, for health, info and discovery. */
export type ServiceInfo = {
  readonly version: string
  readonly startedAtMs: number
  /** Scheme, host and port of the public URL. */
  readonly origin: () => string
  /** Returns whether the service was told to end. */
  readonly draining: () => boolean
  /** The free space on the database's disk, where the service can see that. */
  readonly room: FreeSpace | undefined
  /** ISO time of a key's last use in this process, or null. */
  readonly keyLastUsed: (keyHash: string) => string | null
  /** The interface as text, made once. */
  readonly openapiJson: string
  readonly docsHtml: () => string
  readonly metrics: () => Promise<string>

  /** Gives test dollars; only with --devnet. */
  readonly faucet:
    | ((address: string, amount: bigint) => Promise<{ tx_hash: string; balance: string }>)
    | undefined
}
