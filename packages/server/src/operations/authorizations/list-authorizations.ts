import { makeInvalidFault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { describeAuthorization } from './describe-authorization.ts'
import { listManaged } from './granters.ts'

export const listAuthorizations: Operation<
  'listAuthorizations',
  'database' | 'tenants' | 'world' | 'keyUse'
> = async (call, { params: { app }, query }) => {
  const { database, tenants, keyUse } = call.service
  const all = listManaged(call, app)
  const { chain, ledger, schema } = tenants.system
  const { limit = 100, cursor } = query
  const before = cursor === undefined ? -1 : all.findIndex(({ id }) => id === cursor)
  if (cursor !== undefined && before < 0)
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  const page = all.slice(before + 1, before + 1 + limit)
  await chain.whenApplied(chain.head().height)
  const ids = page.map(({ id }) => id)
  const spent = await ledger.sumSpent(database, schema, ids)
  const used = await keyUse.readLastUsed(page.map(({ key_hash: hash }) => hash))
  const isLast = before + 1 + limit >= all.length
  return {
    authorizations: page.map((one) =>
      describeAuthorization(call, one, {
        spent: spent.get(one.id) ?? 0n,
        lastUsed: used.get(one.key_hash) ?? null,
      }),
    ),
    next_cursor: isLast ? null : (page.at(-1)?.id ?? null),
  }
}
