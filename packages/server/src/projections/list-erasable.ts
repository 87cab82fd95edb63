import { listExpiredBy } from './expiry.ts'
import { listResealedBy } from './reseal.ts'

/** Lists the leaves whose bytes may be gone from the log because of an entry, given by its bytes. */
export function listErasable(bytes: Uint8Array): readonly number[] {
  return [...listExpiredBy(bytes), ...listResealedBy(bytes)]
}
