import { isRecord } from '../../base/is-record.ts'
import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'

/** What PostgreSQL would do for a statement. */
export type QueryPlan = {
  /** In PostgreSQL's unit: a page read in order is 1. */
  readonly cost: number
  /** Names of the indexes in the database that something is found by, or that are gone through in their order. */
  readonly indexes: readonly string[]
  /** Those of them that nothing is found by: each entry is looked at. */
  readonly walked: readonly string[]
}

/** Plans the statement with its values, and does not run it. */
export async function planOf(database: Database, statement: SqlStatement): Promise<QueryPlan> {
  const rows = await database.query(sql`EXPLAIN (FORMAT JSON) ${statement}`)
  const [sent] = Object.values(rows[0] ?? {})
  const parsed: unknown = typeof sent === 'string' ? JSON.parse(sent) : sent
  const [root]: unknown[] = Array.isArray(parsed) ? parsed : []
  const top = isRecord(root) && isRecord(root.Plan) ? root.Plan : {}
  const nodes = [...nodesOf(top)]
  const cost = top['Total Cost']
  return {
    cost: typeof cost === 'number' ? cost : 0,
    indexes: namesIn(nodes),
    walked: namesIn(nodes.filter((node) => node['Index Cond'] === undefined)),
  }
}

type Node = Readonly<Record<string, unknown>>

function* nodesOf(node: Node): Generator<Node> {
  yield node
  const inner: unknown[] = Array.isArray(node.Plans) ? node.Plans : []
  for (const each of inner) if (isRecord(each)) yield* nodesOf(each)
}

function namesIn(nodes: readonly Node[]): string[] {
  return [...new Set(nodes.flatMap((node) => textsIn(node, 'Index Name')))]
}

function textsIn(node: Node, name: string): string[] {
  const text = node[name]
  return typeof text === 'string' ? [text] : []
}
