import type { FreeSpace } from '../../database/embedded/free-space.ts'

/** What the service knows of itself, for health, info and discovery. */
export type ServiceInfo = {
  readonly version: string
  readonly startedAtMs: number
  /** Scheme, host and port of the public URL. */
  readonly origin: () => string
  /** Whether it was told to end. */
  readonly draining: () => boolean
  /** On the database's disk, where that is ours to see. */
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
