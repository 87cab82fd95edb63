import type { Anchor } from '../../anchors/evm-anchors.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import type { AnchorPage, AnchorRow, AnchorWithHead } from '../../projections/anchors.ts'
import type { Operation } from '../operation.ts'
import { requireVisibleChain } from './visible-chain.ts'

export const listAnchors: Operation<'listAnchors', 'database' | 'tenants'> = async (
  call,
  { params, query },
) => {
  await requireVisibleChain(call, params.app)
  const { database, tenants } = call.service
  const { anchors, schema } = tenants.system
  const { limit = 100 } = query
  const page = { after: parseCursor(query.cursor), limit: limit + 1 }
  const found =
    params.app === 'system'
      ? await anchors.list(database, schema, page)
      : await anchors.listWithHeads(database, schema, { app: params.app, ...page })
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  return {
    anchors: rows.map(describeAnchor),
    next_cursor: last === undefined ? null : `${last.size}.${last.transaction}`,
  }
}

function describeAnchor(row: AnchorRow | AnchorWithHead) {
  const { raw: _, size, root, ...anchor }: Anchor = JSON.parse(row.body)
  return {
    ...anchor,
    system: { size, root },
    ...('app_size' in row && {
      head: { height: Number(row.height), size: Number(row.app_size), root: row.root },
    }),
  }
}

function parseCursor(cursor: string | undefined): AnchorPage['after'] {
  if (cursor === undefined) return undefined
  const [, size, transaction] = /^(\d{1,16})\.(0x[0-9a-f]{64})$/.exec(cursor) ?? []
  if (size === undefined || transaction === undefined)
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  return { size: BigInt(size), transaction }
}
