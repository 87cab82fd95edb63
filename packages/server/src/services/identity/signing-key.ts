import { SetupError } from '../../base/setup-error.ts'
import { createSigningKey, findSigner, loadSigner } from '../../chain/signing.ts'
import type { Database } from '../../database/database.ts'
import { findKept, keepFirst, serviceSecrets } from './secrets.ts'

/** The public key that this database's chains are signed with, 32 bytes; noted at the first start. */
const pin = serviceSecrets.signingPublicKey.name

/**
 * Makes the signing key of a new service, and refuses to go on without the key of an old one, or with another's:
 * checkpoints and receipts that clients hold name it.
 */
export async function ensureSigningKey(database: Database, path: string): Promise<void> {
  const pinned = await findKept(database, pin)
  if (pinned === undefined && (await findSigner(path, pin)) === undefined)
    await createSigningKey(path)
  const { publicKey } = await loadSigner(path, pin)
  if (!publicKey.equals(pinned ?? (await keepFirst(database, pin, publicKey))))
    throw new SetupError(
      `${path} is not the key that this database's chains are signed with: data folder and database belong to different services`,
    )
}
