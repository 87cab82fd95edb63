import type { World } from '../../base/world.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../database/database.ts'
import { ensureSecret, serviceSecrets } from '../identity/secrets.ts'
import { Upstreams } from './upstreams.ts'

/** Opens the way to sellers' own APIs; the secrets of their headers are sealed with a key that stays with the database. */
export async function openUpstreams(
  { allowedUpstreams: allowed }: Config,
  database: Database,
  world: World,
): Promise<Upstreams> {
  const headerKey = await ensureSecret(database, world, serviceSecrets.upstreamHeaders)
  return new Upstreams({ world, allowed, headerKey })
}
