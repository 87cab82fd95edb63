import { expect } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import type { Data } from '../support/data.ts'
import type { Json, TestReply, TestService } from '../support/service.ts'

export function change(app: Data, action: 'add' | 'remove', collections: readonly string[]) {
  return app.call('POST', '/encryption', { action, collections })
}

/** Waits until the tasks that an answer names have ended. */
export async function settle(app: Data, { status, body, text }: TestReply): Promise<void> {
  expect(status, text).toBe(200)
  for (const { task_id } of body.tasks ?? []) {
    const read = async () => (await app.call('GET', `/../../../task/${task_id}`)).body.status
    await expect.poll(read, { timeout: 60_000, interval: 50 }).toBe('Completed')
  }
}

/** All that reads of a collection say, apart from where the chain stands. */
export async function readAll(app: Data, name: string, keys: readonly string[]): Promise<Json[]> {
  const replies = [
    await app.list(name),
    await app.list(name, { include_history: true, sortBy: 'text' }),
    await app.list(name, { find: { text: { startsWith: 'planted1' } }, select: { id: true } }),
    await app.call('GET', `/collections/${name}/changes`),
    ...(await Promise.all(keys.map((key) => app.record(name, key)))),
    ...(await Promise.all(keys.map((key) => app.record(name, key, '/history')))),
  ]
  const metadata = (await app.call('GET', `/collections/${name}?include_stats=true`)).body.metadata
  const texts = replies.map(({ status, text }) => {
    const kept = text.replace(/,?"(as_of|next|request_id)":("[^"]*"|\{[^}]*\}|null)/g, '')
    return `${status} ${kept}`
  })
  return [...texts, metadata.document_count]
}

/** The content of every table of applications. */
export async function readTables({ database }: TestService): Promise<ReadonlyMap<string, string>> {
  const tables = await database.query<{ schema: string; name: string }>(sql`
    SELECT nspname::text AS schema, relname::text AS name
    FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE nspname LIKE 'app\\_%' AND relkind = 'r' ORDER BY nspname, relname`)
  const found = new Map<string, string>()
  for (const { schema, name } of tables) {
    const [row] = await database.query<{ hash: string | null }>(sql`
      SELECT md5(string_agg(one::text, ',' ORDER BY one::text)) AS hash FROM ${sql.id(schema, name)} AS one`)
    found.set(`${schema}.${name}`, row?.hash ?? '')
  }
  return found
}

export async function countErased({ running }: TestService, app: Data): Promise<number> {
  const { chain } = await running.service.tenants.load(app.appId)
  let erased = 0
  for await (const block of chain.blocksFrom(1))
    erased += block.entries.filter((entry) => entry === undefined).length
  return erased
}

/** The first difference of the audit, and whether a rebuild made the same tables. */
export async function check(service: TestService): Promise<[unknown, boolean]> {
  const found = await service.whileStopped((config) => audit(config, () => undefined))
  const tables = await readTables(service)
  const { equal } = await service.whileStopped((config) => rebuild(config, () => undefined))
  expect(await readTables(service)).toEqual(tables)
  return [found.difference, equal]
}
