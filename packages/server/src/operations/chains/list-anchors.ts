import { type Anchor, isCelestiaAnchor } from '../../anchors/anchor-chain.ts'
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
    next_cursor:
      last === undefined ? null : `${last.size}.${Buffer.from(last.name).toString('base64url')}`,
  }
}

function describeAnchor(row: AnchorRow | AnchorWithHead) {
  const { size, root, ...anchor } = withoutProof(JSON.parse(row.body))
  return {
    ...anchor,
    system: { size, root },
    ...('app_size' in row && {
      head: { height: Number(row.height), size: Number(row.app_size), root: row.root },
    }),
  }
}

/** Leaves out what proofs have: bytes of the transaction, note, header and proof. */
function withoutProof(anchor: Anchor) {
  if (isCelestiaAnchor(anchor)) {
    const { note: _, header: __, proof: ___, ...shown } = anchor
    return shown
  }
  const { raw: _, ...shown } = anchor
  return shown
}

function parseCursor(cursor: string | undefined): AnchorPage['after'] {
  if (cursor === undefined) return undefined
  const [, size, name] = /^(\d{1,16})\.([A-Za-z0-9_-]{1,100})$/.exec(cursor) ?? []
  if (size === undefined || name === undefined)
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  return { size: BigInt(size), name: Buffer.from(name, 'base64url').toString() }
}
